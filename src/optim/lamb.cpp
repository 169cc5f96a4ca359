#include "optim/lamb.h"

#include "optim/kind_of.h"

namespace aloft::optim {

OptimizerKind lamb_kind() {
  return kind_of<Lamb>("lamb", "Adam's direction at each tensor's own norm (You et al. 2019)",
                       {{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}});
}

UpdateRule Lamb::rule() const { return rule_of("lamb", *this); }

Lamb::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
