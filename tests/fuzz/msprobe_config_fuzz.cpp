// msprobe's config.json of any bytes: refused with its mistakes, or keys of [probe] that a recipe
// takes, or refuses in its turn.
#include <cstdint>

#include "base/error.h"
#include "recipe/msprobe_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const MsprobeConfig config = parse_msprobe_config(text, "fuzz.json");
    ensure(!config.probe.empty(), "a task is always asked for");
    static_cast<void>(parse_recipe("", "fuzz.toml", config.probe));
  } catch (const UserError&) {
  }
  return 0;
}
