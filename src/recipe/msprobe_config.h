// msprobe's config.json, read as it is: what it asks for, as keys of the recipe's [probe].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "recipe/recipe.h"

namespace aloft {

struct MsprobeConfig {
  std::vector<Override> probe;  // of [probe]
  std::string dump_path;        // where it wants the dump; empty: it does not say
};

// UserError E0729 names every key that there is not, and every value that Aloft has nothing for;
// DataError E0601 where the file cannot be read.
MsprobeConfig read_msprobe_config(const Path& path);
// The same of a text.
MsprobeConfig parse_msprobe_config(std::string_view text, const std::string& name);

}  // namespace aloft
