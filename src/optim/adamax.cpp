#include "optim/adamax.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice adamax_advice() {
  return {"as Adam, where now and then a gradient is huge", "2e-3 (Kingma and Ba 2014)"};
}

OptimizerKind adamax_kind() {
  return kind_of<Adamax>("adamax", "Adam by the largest gradient (Kingma and Ba 2014)",
                         {{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}});
}

UpdateRule Adamax::rule() const { return rule_of("adamax", *this); }

Adamax::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
