#include "optim/lion.h"

#include "optim/kind_of.h"

namespace aloft::optim {

OptimizerKind lion_kind() {
  return kind_of<Lion>("lion", "the sign of a mean of gradients (Chen et al. 2023)",
                       {{}, {.beta1 = 0.5, .beta2 = 0.75}});
}

UpdateRule Lion::rule() const { return rule_of("lion", *this); }

Lion::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
