#include "optim/radam.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice radam_advice() { return {"as Adam, without a warm-up", "1e-3 (Liu et al. 2019)"}; }

OptimizerKind radam_kind() {
  return kind_of<RAdam>("radam", "Adam, its rate rectified (Liu et al. 2019)",
                        {{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01, .decoupled_decay = true}});
}

UpdateRule RAdam::rule() const { return rule_of("radam", *this); }

RAdam::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
