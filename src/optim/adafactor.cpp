#include "optim/adafactor.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice adafactor_advice() {
  return {"large language models, where Adam's states do not fit",
          "1e-2, and at most 1 / sqrt(t) (Shazeer and Stern 2018)"};
}

OptimizerKind adafactor_kind() {
  OptimizerKind k = kind_of<Adafactor>(
      "adafactor", "mean squares of rows and columns alone (Shazeer and Stern 2018)",
      {{}, {.beta2_decay = -0.5, .eps_size = 0.25, .clip = 0.5}});
  k.formulas[0].text.assign(Adafactor::kEquations.begin(), Adafactor::kEquations.end());
  return k;
}

UpdateRule Adafactor::rule() const { return rule_of("adafactor", *this); }

Adafactor::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
