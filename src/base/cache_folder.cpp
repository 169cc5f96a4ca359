#include "base/cache_folder.h"

#include <cstdlib>

namespace aloft {

Path default_cache() {
  const char* base = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  return (base && *base ? Path(base) : Path(home && *home ? home : "/tmp") / ".cache") / "aloft";
}

}  // namespace aloft
