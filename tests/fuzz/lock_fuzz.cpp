// The reader of lock files on arbitrary bytes: a holder that is written and read back as it was and
// whose state can be told, or nobody.
#include <cstdint>

#include "base/error.h"
#include "base/folder_lock.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  const auto holder = parse_lock({reinterpret_cast<const char*>(data), size});
  if (!holder) return 0;
  const auto again = parse_lock(lock_text(*holder));
  ensure(again && again->process == holder->process && again->since == holder->since,
         "it reads back as it was");
  ensure(holder->process.pid >= 0, "a process has a number");
  const ProcessName self = this_process();
  for (const bool locked : {false, true}) state_of(*holder, self, locked);
  return 0;
}
