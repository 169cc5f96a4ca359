// The first place at which two runs part, in words and for programs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "observe/compare/coverage.h"
#include "observe/compare/difference.h"
#include "observe/compare/lone_arguments.h"
#include "observe/compare/lone_functions.h"
#include "observe/compare/lone_modules.h"

namespace aloft::compare {

struct Divergence {
  const Compared* compared = nullptr;  // null of what the loop says, such as a learning rate
  // What kind of thing it is: "data", "parameter", "forward", "loss", "backward", "gradient" (of a
  // parameter), "schedule", "loss scale", "optimizer", "gradient norm", "update".
  std::string place;
  // What computes otherwise: of a result its own call; of what a call takes whoever computes that,
  // the module around it.
  std::string module;  // its path, "" of the model itself
  std::string kind;    // its class, or the function
  std::string behind;  // the last call before it that agrees; "" where there is none
  std::vector<LoneArgument> arguments;  // that one of the two runs alone gives to what parts
  std::vector<LoneFunction> functions;  // that one of the two alone calls on the way to it
  std::string line;      // that calls it, in either run: "gpt2.py:31"; "" where it is not known
  std::string sentence;  // without the words before it: "forward, h.0.attn (Attention), behind ..."
};

// Nothing where all are within what rounding explains. `loop`: what the training loop says that is
// not the same. `bench`, where it is given: whose lines are named where the first run has none.
// `pairs`, with `bench`: what one run alone calls on the way is named.
std::optional<Divergence> first_divergence(const std::vector<Compared>& all, const DumpFile& npu,
                                           const std::vector<TrainingDifference>& loop = {},
                                           const DumpFile* bench = nullptr,
                                           const Pairs* pairs = nullptr);

// "no divergence: 132 tensors of 60 calls agree in their statistics ...", where there is none; of
// elements without the last words. `bare`: of how many more the dumps have nothing to compare;
// `coverage`: how many there are of which these are, and what one run lacks.
std::string agreement(const std::vector<Compared>& all, std::size_t bare = 0,
                      const Coverage& coverage = {});

// "0.097", "4e-06"; "not finite".
std::string in_words(double relative);

}  // namespace aloft::compare
