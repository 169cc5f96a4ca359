// The first place at which two runs part, in words and for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observe/compare/difference.h"

namespace aloft::compare {

struct Divergence {
  const Compared* compared = nullptr;
  // What computes otherwise: of a result its own call; of what a call takes whoever computes that,
  // the module around it.
  std::string module;  // its path, "" of the model itself
  std::string kind;    // its class, or the function
  std::string behind;  // the last call before it that agrees; "" where there is none
  std::string line;    // of the program: "gpt2.py:31"; "" where it is not known
  std::string sentence;
};

// Nothing where all are within what rounding explains.
std::optional<Divergence> first_divergence(const std::vector<Compared>& all, const DumpFile& npu);

// "no divergence: 132 tensors of 60 calls agree ...", where there is none.
std::string agreement(const std::vector<Compared>& all);

// "0.097", "4e-06"; "not finite".
std::string in_words(double relative);

}  // namespace aloft::compare
