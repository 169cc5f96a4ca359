// What is known of one side as a zip file, in the layout of msprobe 26.2 (`msprobe config_check`):
//   env                                        variables of the environment, JSON
//   pip                                        "NAME=VERSION", a line a package
//   hyperparameters/hyperparameters_static.json, .../hyperparameters_dynamic.json
//   dataset/stepN/rankR/dataset.json           {"args": {"0": {"max", "min", "mean", "norm"}}, ...}
//   weights/stepN/rankR/weight.json            {NAME: {"max", "min", "mean", "norm"}}
//   random/rankR.json                          {OP: [{"count", "stack"}]}
// and beside them aloft.json, which msprobe passes over: hashes, the seed, what is a default.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/file.h"
#include "observe/config_check/side.h"

namespace aloft::config_check {

// Variables of the environment are those that a run depends on (variables.inc), never all: others
// may be secrets. EnvironmentError E0603.
void write_pack(const Path& path, const Side& side);

// What write_pack() and msprobe write. DataError E0845 where it is no such zip file, with the file
// in it that cannot be used.
Side read_pack(const Path& path);
Side parse_pack(std::span<const std::byte> file, const std::string& name);

}  // namespace aloft::config_check
