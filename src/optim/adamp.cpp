#include "optim/adamp.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice adamp_advice() {
  return {"convnets with norms behind their layers, so that the size of a weight says nothing",
          "1e-3, weight decay 1e-2 (program of Heo et al. 2020)"};
}

OptimizerKind adamp_kind() {
  OptimizerKind k =
      kind_of<AdamP>("adamp", "Adam without steps along scale-invariant weights (Heo et al. 2020)",
                     {{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01, .nesterov = true}});
  k.formulas[0].text.assign(AdamP::kEquations.begin(), AdamP::kEquations.end());
  return k;
}

UpdateRule AdamP::rule() const { return rule_of("adamp", *this); }

AdamP::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
