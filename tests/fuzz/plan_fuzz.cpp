// A Plan's JSON from any bytes: refused with an error, or a Plan that is written and read back, and
// printed for people.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "plan/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  aloft::Plan plan;
  try {
    plan = aloft::plan_from_json({reinterpret_cast<const char*>(data), size});
  } catch (const aloft::DataError&) {
    return 0;
  }
  const std::string text = to_json(plan);
  const aloft::Plan again = aloft::plan_from_json(text);
  if (to_json(again) != text || again.signature() != plan.signature()) __builtin_trap();
  if (print(plan).empty()) __builtin_trap();
  return 0;
}
