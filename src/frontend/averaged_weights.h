// The means that an optimizer keeps of its weights (OptimizerSpec::average), in the weights' place.
#pragma once

#include <cstddef>
#include <vector>

#include "frontend/optimizer.h"

namespace aloft {

namespace nn {
class Module;
}

// While one lives, the parameters hold their means, rounded to the types that they are stored in:
// to be evaluated, or written by models::save_state(). The masters stay. What needs the weights
// themselves is UserError E0836 meanwhile and changes nothing: a step, eagerly or by a program, a
// checkpoint that is saved or loaded, a state that is loaded, an optimizer that is made, another
// precision, another of these blocks. A parameter that has had no update is what it was.
//
//   {
//     const AveragedWeights means(optimizer);
//     fmt::print("{}\n", loss(x, y).item());
//   }
class AveragedWeights {
 public:
  // UserError E0830 where the optimizer keeps no means, E0836 where weights hold means already.
  explicit AveragedWeights(const Optimizer& optimizer);
  // The same; and the model's buffers, such as running statistics, may change within the block
  // (nn/update_bn.h): they are what they were behind it.
  AveragedWeights(const Optimizer& optimizer, const nn::Module& model);
  ~AveragedWeights();  // the weights are what they were
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  struct Kept {
    VariablePtr variable;
    std::vector<std::byte> value;
  };
  std::vector<Kept> parameters_, buffers_;
};

// Inside: E0836 where a mean stands in the place of one of them. `refused`: what may not happen
// then, such as "a step is made".
void need_own_values(const std::vector<VariablePtr>& variables, const char* refused);
void need_own_value(const Variable& v, const char* refused);

}  // namespace aloft
