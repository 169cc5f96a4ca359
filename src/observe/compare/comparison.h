// `aloft probe compare`: two runs, a step at a time, and the files that say how they differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace aloft::compare {

struct Request {
  Path npu, bench;    // a dump.json, its folder, a step's folder, or the folder of all steps
  Path out;           // folder of the results
  Path map;           // of names; empty: none
  bool xlsx = false;  // compare_result.xlsx as well
};

// What came out of one step, of one process.
struct StepResult {
  std::string step, rank;  // "step0", "rank1"; "" where the folders do not say
  bool has_divergence = false;
  std::string sentence;        // where the two part, or that they do not
  std::size_t unreadable = 0;  // of how many tensors figures, or a file of elements, cannot be read
  std::vector<Path> files;
  std::string finding = {};  // of a divergence its sentence, without the step
  // What one run has nothing of, where what both have agrees (coverage.h); else "".
  std::string lacks = {};
  std::string remark = {};  // what differs and is no divergence (divided_loss.h); "" of nothing
};

// Reads, compares, and writes compare_result.csv, .json and .html into `out`; of several steps or
// processes each its own, with their names, and compare_result.json and .html of all (steps.h).
// What a comparison before has left in `out` is removed once all of them are there. Each file is
// whole or not there. DataError E0650 for a file that is no dump, E0651 where there is nothing to
// compare; UserError E0728. A line of the map that has no effect in any of the steps is warned of.
// `alone`, where it is given: the steps and processes that were not compared (dump_pairs.h).
std::vector<StepResult> compare_runs(const Request& request, std::string* alone = nullptr);

}  // namespace aloft::compare
