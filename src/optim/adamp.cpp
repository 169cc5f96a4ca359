#include "optim/adamp.h"

#include "optim/kind_of.h"

namespace aloft::optim {

OptimizerKind adamp_kind() {
  return kind_of<AdamP>("adamp",
                        "Adam without steps along scale-invariant weights (Heo et al. 2020)",
                        {{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01, .nesterov = true}});
}

UpdateRule AdamP::rule() const { return rule_of("adamp", *this); }

AdamP::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
