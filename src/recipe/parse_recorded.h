// A recipe that a run was made by, read again.
#pragma once

#include <string_view>
#include <vector>

#include "recipe/recipe.h"

namespace aloft {

// As parse_recipe(), but that keys may be there which do nothing: the run was made with them, and
// its command line may have switched off what its file asked for. What `overrides` say is looked at
// as everywhere.
Recipe parse_recorded(std::string_view toml, std::string_view name,
                      const std::vector<Override>& overrides = {});

}  // namespace aloft
