#include "optim/adamw.h"

#include "optim/kind_of.h"

namespace aloft::optim {

OptimizerKind adamw_kind() {
  return kind_of<AdamW>("adamw", "Adam with decoupled weight decay (Loshchilov and Hutter 2017)",
                        {{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}});
}

UpdateRule AdamW::rule() const { return rule_of("adamw", *this); }

AdamW::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
