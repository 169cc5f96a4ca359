// What a file is known by: as many bytes, with this hash.
#pragma once

#include <cstdint>

namespace aloft {

struct FileSeal {
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;  // XXH3
  friend bool operator==(const FileSeal&, const FileSeal&) = default;
};

}  // namespace aloft
