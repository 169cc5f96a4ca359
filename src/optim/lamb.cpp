#include "optim/lamb.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice lamb_advice() {
  return {"transformers, batches of thousands",
          "5e-3 for a batch of 32,768, in proportion to its root (You et al. 2019)"};
}

OptimizerKind lamb_kind() {
  OptimizerKind k =
      kind_of<Lamb>("lamb", "Adam's direction at each tensor's own norm (You et al. 2019)",
                    {{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}});
  k.foreign = {
      {"optimizer.adam_w_mode", "true", "the decay is part of the direction, as in the paper"},
      {"optimizer.bias_correction", "true",
       "the moments' start at 0 is taken off them, as in the paper"},
      {"optimizer.grad_averaging", "true", "the momentum is a mean of gradients, as in the paper"},
      {"optimizer.use_nvlamb", "true", "tensors without decay have their own rate, too"}};
  return k;
}

UpdateRule Lamb::rule() const { return rule_of("lamb", *this); }

Lamb::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
