// aloft probe run MODEL --tokens F: what a saved language model computes of some tokens, forward
// and backward.
#pragma once

#include <cstdint>
#include <string>

#include "cli/verb.h"
#include "recipe/recipe.h"

namespace aloft::cli {

struct ProbedModel {
  std::string path;        // a Hugging Face folder, a run directory, a checkpoint
  std::string tokens;      // as read_question() takes them
  std::int64_t batch = 0;  // which of a file of batches
  std::string out;         // where step0/rank/dump.json goes
  std::string precision;   // as precision_of() takes it
  ProbeSection probe;      // what is looked at: of tasks all but "none" and "acc_check"
  bool is_json = false;    // the answer is a document
  bool is_quiet = false;   // there are no lines
};

// Errors of open_saved_model(), read_question() and ProbeWriter; UserError E0811 where a dump lies
// in `out`; EnvironmentError E0401, E0603.
ExitCode probe_model(const ProbedModel& probed);

}  // namespace aloft::cli
