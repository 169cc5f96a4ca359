#include "optim/adagrad.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice adagrad_advice() {
  return {"sparse features: what is seldom seen keeps a high rate", "1e-2 (as torch.optim begins)"};
}

OptimizerKind adagrad_kind() {
  return kind_of<Adagrad>("adagrad", "rates that fall with squared gradients (Duchi et al. 2011)",
                          {{}, {.lr_decay = 0.125, .initial_sum = 0.5, .eps = 0.01}});
}

UpdateRule Adagrad::rule() const { return rule_of("adagrad", *this); }

Adagrad::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
