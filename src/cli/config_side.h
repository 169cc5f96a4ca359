// What a path says of a run, for `aloft probe check-config`: a recipe, a run's folder, files of
// settings, weights, msprobe's zip.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "observe/config_check/side.h"

namespace aloft::cli {

struct SideOptions {
  std::set<std::string> checks;  // what is asked for: dataset, weights, ...
  std::int64_t batches = 4;      // that are looked at
};

// By what lies there: a recipe (*.toml) and the folder of a run say all of it, files of settings
// (settings_file.h) hyper-parameters and what they export, a zip file (pack.h) what was packed, a
// file or folder of weights (weights_file.h) these. UserError E0718 for anything else; the
// errors of whoever reads it.
config_check::Side side_of(const std::string& path, const SideOptions& options);

}  // namespace aloft::cli
