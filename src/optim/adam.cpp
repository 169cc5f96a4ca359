#include "optim/adam.h"

#include "optim/kind_of.h"

namespace aloft::optim {

OptimizerKind adam_kind() {
  return kind_of<Adam>("adam", "Adam with L2 regularisation (Kingma and Ba 2014)",
                       {{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}});
}

UpdateRule Adam::rule() const { return rule_of("adam", *this); }

Adam::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
