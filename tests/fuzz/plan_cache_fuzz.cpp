// The text of a compiled program from any bytes: nothing, or a program whose text is read back as
// the same; and an entry of the cache around it, which is whole or nothing.
#include <cstdint>
#include <string>
#include <string_view>

#include "frontend/plan_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string key(32, '0');
  const std::string entry = aloft::entry_text(key, text);
  if (aloft::program_in(entry, key) != text) __builtin_trap();
  if (const auto inside = aloft::program_in(text, key); inside && inside->size() >= size)
    __builtin_trap();
  const auto program = aloft::compiled_from(text);
  if (!program) return 0;
  const std::string again = aloft::text_of(*program, 1);
  if (again.empty()) return 0;
  const auto read = aloft::compiled_from(again);
  if (!read || aloft::text_of(*read, 1) != again) __builtin_trap();
  return 0;
}
