#include "optim/adam.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice adam_advice() {
  return {"small networks of any kind, GANs",
          "1e-3 (Kingma and Ba 2014); GANs: 2e-4, beta1 0.5 (Radford et al. 2015)"};
}

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
