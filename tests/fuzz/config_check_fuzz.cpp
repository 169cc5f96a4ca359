// Whatever check-config reads of others, of any bytes: a shell script, Python, YAML, JSON, a packed
// zip. Each is refused, or held against itself, of which nothing is an error.
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "observe/config_check/checks.h"
#include "observe/config_check/pack.h"
#include "observe/config_check/results.h"
#include "observe/config_check/settings_file.h"

namespace {

using namespace aloft;
using namespace aloft::config_check;

void check(const Side& side) {
  const std::vector<Section> sections = check_sides(side, side);
  for (const Section& s : sections)
    if (s.name == "env" || s.name == "pip" || s.name == "random")
      ensure(s.level() == Level::Pass, "a side is like itself");
  ensure(!page_of(side, side, sections).empty(), "there is a page");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* const name : {"a.sh", "a.py", "a.yaml", "a.json"}) try {
      check(parse_settings(text, name));
    } catch (const DataError& e) {
      ensure(e.code() == "E0844", "what is refused has its code");
    }
  try {
    check(parse_pack(bytes, "a.zip"));
  } catch (const DataError& e) {
    ensure(e.code() == "E0845", "what is refused has its code");
  }
  return 0;
}
