// A recipe's text and its overrides as keys with values, before anybody asks what they mean.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/recipe.h"

namespace aloft {

inline constexpr const char* kGroupsKey = "optimizer.groups";

struct Leaf {
  std::string key, origin;
  nlohmann::json value;
  // The origins of what is inside a leaf that stays whole: "type" of [precision], "0.lr" of groups.
  std::map<std::string, std::string> inner;
};

// The leaves of the text in order of appearance, then those of the overrides; `name` stands in the
// origins. [precision] and the optimizer's groups stay whole. UserError E0714 where it is not TOML,
// E0713 for an override that is not UTF-8.
std::vector<Leaf> leaves_of(std::string_view text, std::string_view name,
                            const std::vector<Override>& overrides);

}  // namespace aloft
