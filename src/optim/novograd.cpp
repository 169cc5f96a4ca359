#include "optim/novograd.h"

#include "optim/kind_of.h"

namespace aloft::optim {

OptimizerKind novograd_kind() {
  return kind_of<NovoGrad>("novograd", "a momentum at each tensor's gradient norm (Ginsburg 2019)",
                           {{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}});
}

UpdateRule NovoGrad::rule() const { return rule_of("novograd", *this); }

NovoGrad::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
