#include "optim/sgd.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice sgd_advice() {
  return {"what is simple; no states", "ten times momentum's, for steps of the same size"};
}

OptimizerKind sgd_kind() {
  OptimizerKind k = kind_of<Sgd>("sgd", "gradient descent (Robbins and Monro 1951)", {{}});
  k.usual_lr = kSgdRecipeRate;
  return k;
}

namespace {
Momentum as_momentum(const Sgd& o) {
  return {.momentum = o.momentum, .dampening = o.dampening, .nesterov = o.nesterov};
}
}  // namespace

std::optional<OptionMisfit> Sgd::misfit() const { return as_momentum(*this).misfit(); }

UpdateRule Sgd::rule() const { return as_momentum(*this).rule(); }

Sgd::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
