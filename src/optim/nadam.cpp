#include "optim/nadam.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice nadam_advice() { return {"as Adam, one step ahead", "2e-3 (as torch.optim begins)"}; }

OptimizerKind nadam_kind() {
  return kind_of<NAdam>(
      "nadam", "Adam, one step ahead (Dozat 2016)",
      {{},
       {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01, .momentum_decay = 0.5, .decoupled_decay = true}});
}

UpdateRule NAdam::rule() const { return rule_of("nadam", *this); }

NAdam::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
