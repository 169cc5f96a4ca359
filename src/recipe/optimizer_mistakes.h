// Inside: what is wrong with the section [optimizer] of a recipe beyond its values one by one.
#pragma once

#include <string>
#include <vector>

#include "recipe/recipe.h"

namespace aloft {

struct KeyMistake {
  std::string key, text;
};

// Options that do not fit together or under the precision. `others_fit`: nothing else is wrong, and
// the precision may be judged by.
std::vector<KeyMistake> optimizer_mistakes(const Recipe& recipe, bool others_fit);

// Where a key's value is from: "recipe.toml:12", or "default".
std::string origin_of(const Recipe& recipe, const std::string& key);

}  // namespace aloft
