// The means that an optimizer keeps of its weights (OptimizerSpec::average), in the weights' place.
#pragma once

#include <cstddef>
#include <vector>

#include "frontend/optimizer.h"

namespace aloft {

// While one lives, the parameters hold their means, rounded to the types that they are stored in:
// to be evaluated, or written. The masters stay. A step that is made meanwhile, eagerly or by a
// program, is UserError E0836 and changes nothing. A parameter that has had no update is what it
// was.
//
//   {
//     const AveragedWeights means(optimizer);
//     fmt::print("{}\n", loss(x, y).item());
//   }
class AveragedWeights {
 public:
  // UserError E0830 where the optimizer keeps no means.
  explicit AveragedWeights(const Optimizer& optimizer);
  ~AveragedWeights();  // the weights are what they were
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  struct Kept {
    VariablePtr parameter;
    std::vector<std::byte> value;
  };
  std::vector<Kept> kept_;
};

// Inside: E0836 where a mean stands in the variable's place.
void need_own_value(const Variable& v);

}  // namespace aloft
