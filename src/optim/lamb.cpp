#include "optim/lamb.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice lamb_advice() {
  return {"transformers, batches of thousands",
          "5e-3 for a batch of 32,768, in proportion to its root (You et al. 2019)"};
}

OptimizerKind lamb_kind() {
  return kind_of<Lamb>("lamb", "Adam's direction at each tensor's own norm (You et al. 2019)",
                       {{},
                        {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01},
                        {.beta1 = 0.5,
                         .beta2 = 0.75,
                         .adam_w_mode = false,
                         .bias_correction = false,
                         .grad_averaging = false,
                         .use_nvlamb = false}});
}

UpdateRule Lamb::rule() const { return rule_of("lamb", *this); }

Lamb::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
