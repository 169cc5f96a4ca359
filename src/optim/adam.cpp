#include "optim/adam.h"

#include "optim/kind_of.h"

namespace aloft::optim {

OptimizerKind adam_kind() {
  return kind_with<Adam>(
      "adam", "Adam with L2 regularisation (Kingma and Ba 2014)",
      std::vector<AdamFormula<false>>{{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}},
      std::vector<AdamFormula<true>>{{.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}});
}

UpdateRule Adam::rule() const {
  if (amsgrad) return rule_of(AdamFormula<true>{beta1, beta2, eps});
  return rule_of(AdamFormula<false>{beta1, beta2, eps});
}

Adam::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
