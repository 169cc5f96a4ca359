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
  // What it says that changes nothing here, and why; a line each.
  std::vector<std::string> notes;
};

// UserError E0729 names every key that there is not, and every value that Aloft has nothing for,
// with what to write instead; DataError E0601 where the file cannot be read. Warns of each note.
// `task`, as [probe] has it: asked for instead of the file's, whose section of that task is then
// read, as msprobe does.
MsprobeConfig read_msprobe_config(const Path& path, const std::string& task = {});
// The same of a text.
MsprobeConfig parse_msprobe_config(std::string_view text, const std::string& name,
                                   const std::string& task = {});

// Of the keys that somebody else has `said`, what he says stands.
std::vector<Override> with_said(std::vector<Override> config, const std::vector<Override>& said);

}  // namespace aloft
