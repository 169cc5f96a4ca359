// What it costs a training step to be looked at.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/bench_step.h"

namespace aloft::cli {

// Makes a second subject of the same weights, which nobody looks at, and has it make as many steps
// as `subject` has made; then both step in turns, the one with the files that a probe writes. These
// are written beside the step that follows: in each turn a step that is not timed comes first, and
// nothing is left to be written when the other's turn begins. Adds to the result `probe`, what
// looks on, `probe_cost`, the ratio of the medians of their steps, `probe_pairs`, how many of
// each were timed, `probe_looks`, how many were looked at, and `parameters_hash` and
// `parameters_hash_off`, which are equal.
void measure_probe(BenchSubject& subject, const BenchOptions& o, nlohmann::json& result);

}  // namespace aloft::cli
