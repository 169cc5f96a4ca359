#include "optim/adadelta.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice adadelta_advice() {
  return {"no rate to be found: steps have the units of the weights", "1 (Zeiler 2012)"};
}

OptimizerKind adadelta_kind() {
  return kind_of<Adadelta>("adadelta", "steps in the units of the weights (Zeiler 2012)",
                           {{}, {.rho = 0.5, .eps = 0.01}});
}

UpdateRule Adadelta::rule() const { return rule_of("adadelta", *this); }

Adadelta::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
