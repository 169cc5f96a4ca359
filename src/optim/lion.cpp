#include "optim/lion.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice lion_advice() {
  return {"as AdamW, with half its states",
          "a third to a tenth of AdamW's, weight decay 3 to 10 times (Chen et al. 2023)"};
}

OptimizerKind lion_kind() {
  return kind_of<Lion>("lion", "the sign of a mean of gradients (Chen et al. 2023)",
                       {{}, {.beta1 = 0.5, .beta2 = 0.75}});
}

UpdateRule Lion::rule() const { return rule_of("lion", *this); }

Lion::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
