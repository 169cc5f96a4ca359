// The recipe of a run, read back from what its run.json or a checkpoint says.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "recipe/recipe.h"

namespace aloft {

// `recipe`: every key, as json_of(Recipe) has it; `origin`: of run.json, the keys that are no
// defaults; where it is no object every key is taken as it stands. `overrides` beat it. UserErrors
// of parse_recorded(); DataError E0643, at `name`, where a key is of a kind that no recipe has.
Recipe recorded_recipe(const nlohmann::json& recipe, const nlohmann::json& origin,
                       const std::string& name, const std::vector<Override>& overrides = {});

}  // namespace aloft
