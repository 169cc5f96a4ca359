#include "optim/adadelta.h"

#include "optim/kind_of.h"

namespace aloft::optim {

OptimizerKind adadelta_kind() {
  return kind_of<Adadelta>("adadelta", "steps in the units of the weights (Zeiler 2012)",
                           {{}, {.rho = 0.5, .eps = 0.01}});
}

UpdateRule Adadelta::rule() const { return rule_of("adadelta", *this); }

Adadelta::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
