// Tensors that a module takes in one run, and not in the other: a mask, positions.
#pragma once

#include <string>
#include <vector>

#include "observe/compare/difference.h"

namespace aloft::compare {

struct LoneArgument {
  std::string call;  // of the run that has it: "Module.h.0.attn.Attention.forward.0"
  std::string path;  // "h.0.attn"; "" of the model itself
  std::string name;  // "attention_mask"
  std::string type;  // "torch.bool"
  bool is_in_first = false;
};

// Of the call at which two runs part, of the module that computes it, and of those around that, the
// inner ones first. What the other run has under the same name is no tensor; or it has nothing
// there, and both modules are of one class: of other classes the arguments are others.
std::vector<LoneArgument> lone_arguments(const std::vector<Compared>& all, const Compared& first,
                                         const std::string& module);

// "; h.0.attn takes attention_mask in the first run alone"; "" of none.
std::string argument_remark(const std::vector<LoneArgument>& arguments);

}  // namespace aloft::compare
