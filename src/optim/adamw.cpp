#include "optim/adamw.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice adamw_advice() {
  return {"transformers, language models; where nothing speaks for another",
          "6e-4 for 125M to 6e-5 for 175B parameters (Brown et al. 2020)"};
}

OptimizerKind adamw_kind() {
  return kind_with<AdamW>(
      "adamw", "Adam with decoupled weight decay (Loshchilov and Hutter 2017)",
      std::vector<AdamWFormula<false>>{{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}},
      std::vector<AdamWFormula<true>>{{.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}});
}

UpdateRule AdamW::rule() const {
  if (amsgrad) return rule_of(AdamWFormula<true>{beta1, beta2, eps});
  return rule_of(AdamWFormula<false>{beta1, beta2, eps});
}

AdamW::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
