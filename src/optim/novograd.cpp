#include "optim/novograd.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice novograd_advice() {
  return {"speech, convnets; half of Adam's states", "1e-2 (speech, NVIDIA NeMo)"};
}

OptimizerKind novograd_kind() {
  OptimizerKind k =
      kind_of<NovoGrad>("novograd", "a momentum at each tensor's gradient norm (Ginsburg 2019)",
                        {{},
                         {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01},
                         {.beta1 = 0.5,
                          .beta2 = 0.75,
                          .reg_inside_moment = false,
                          .bias_correction = true,
                          .grad_averaging = true},
                         {.beta1 = 0.5, .beta2 = 0.75, .init_zero = true}});
  k.foreign = {{"optimizer.norm_type", "2", "norms are roots of sums of squares"}};
  return k;
}

UpdateRule NovoGrad::rule() const { return rule_of("novograd", *this); }

NovoGrad::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
