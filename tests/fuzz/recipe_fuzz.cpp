// A whole recipe from any bytes, as a file and as one `--set`: refused with an error that lists the
// mistakes, or a recipe that prints as TOML, reads back the same, and means something.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "recipe/recipe.h"
#include "recipe/recipe_json.h"

namespace {

void must(bool ok) {
  if (!ok) __builtin_trap();
}

void check(const aloft::Recipe& recipe) {
  const aloft::Recipe again = aloft::parse_recipe(print_config(recipe), "printed");
  must(json_of(again) == json_of(recipe));
  must(!json_of(recipe).dump().empty());
  try {
    optimizer_spec(recipe);
    model_spec(recipe, {{"vocab", std::int64_t{256}}});
  } catch (const aloft::UserError&) {  // a schedule or a vocabulary that does not work out
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check(aloft::parse_recipe(text, "fuzz.toml"));
  } catch (const aloft::UserError&) {
  }
  try {
    check(aloft::parse_recipe("", "fuzz.toml", {aloft::parse_override(text)}));
  } catch (const aloft::UserError&) {
  }
  return 0;
}
