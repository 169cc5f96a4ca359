#include "optim/rmsprop.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {
namespace {

template <bool kCentered, bool kMomentum>
std::vector<RmsPropFormula<kCentered, kMomentum>> samples() {
  const double momentum = kMomentum ? 0.875 : 0;
  // The spread of samples that are drawn apart from their mean may be all rounding errors.
  const double eps = kCentered ? 1 : 1e-8;
  return {{.eps = eps, .momentum = momentum},
          {.alpha = 0.75, .eps = kCentered ? 1 : 0.01, .momentum = momentum},
          {.alpha = 0.75, .eps = kCentered ? 1 : 0.01, .momentum = momentum, .tensorflow = true}};
}

template <bool kCentered, bool kMomentum>
UpdateRule as(const RmsProp& o) {
  return rule_of(RmsPropFormula<kCentered, kMomentum>{
      .alpha = o.alpha, .eps = o.eps, .momentum = o.momentum, .tensorflow = o.tensorflow});
}

}  // namespace

Advice rmsprop_advice() {
  return {"recurrent networks, reinforcement learning",
          "1e-3 (Hinton 2012); tensorflow: 0.045 (Szegedy et al. 2015)"};
}

OptimizerKind rmsprop_kind() {
  return kind_with<RmsProp>("rmsprop",
                            "gradients over the root of their fading mean of squares (Hinton 2012)",
                            samples<false, false>(), samples<false, true>(), samples<true, false>(),
                            samples<true, true>());
}

UpdateRule RmsProp::rule() const {
  if (centered) return momentum > 0 ? as<true, true>(*this) : as<true, false>(*this);
  return momentum > 0 ? as<false, true>(*this) : as<false, false>(*this);
}

RmsProp::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
