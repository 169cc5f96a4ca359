#include "checkpoint/run_name.h"

#include <cstdint>
#include <random>
#include <span>

#include "base/clock.h"
#include "base/folder_lock.h"
#include "base/hash.h"

namespace aloft {

std::string new_run_name() {
  std::random_device random;
  const std::uint64_t words[] = {random(), random(), random(), random()};
  Hasher hasher;
  hasher.update(std::as_bytes(std::span(words)));
  hasher.update(utc_timestamp() + lock_text({this_process(), ""}));
  return hex16(hasher.digest());
}

}  // namespace aloft
