// The one reader of JSON on arbitrary bytes: a value that is no deeper than it may be and prints
// and reads back as it was, or a word on why not.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace {

int depth_of(const nlohmann::json& value) {
  int deepest = 0;
  if (value.is_structured())
    for (const auto& inner : value) deepest = std::max(deepest, 1 + depth_of(inner));
  return deepest;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const nlohmann::json value = parse_json(text);
  if (value.is_discarded()) {
    ensure(!json_problem(text).empty(), "a refusal says why");
    return 0;
  }
  ensure(depth_of(value) <= kDeepestJson, "nothing nests deeper than it may");
  for (const int indent : {-1, 2})
    ensure(parse_json(json_text(value, indent)) == value, "it reads back as it was");
  return 0;
}
