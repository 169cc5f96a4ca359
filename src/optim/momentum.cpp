#include "optim/momentum.h"

#include "base/error.h"
#include "base/text.h"
#include "optim/advice.h"
#include "optim/kind_of.h"
#include "optim/sgd.h"

namespace aloft::optim {

Advice momentum_advice() {
  return {"convnets, images",
          "0.1 for a batch of 256 (He et al. 2015), in proportion to it (Goyal et al. 2017)"};
}

OptimizerKind momentum_kind() {
  OptimizerKind k = kind_of<Momentum>(
      "momentum", "gradient descent along a fading sum of gradients (Polyak 1964)",
      {{.momentum = 0.875},
       {.momentum = 0.875, .dampening = 0.5},
       {.momentum = 0.875, .nesterov = true}});
  k.usual_lr = kSgdRecipeRate;
  return k;
}

std::optional<OptionMisfit> Momentum::misfit() const {
  if (nesterov && momentum <= 0) return OptionMisfit{"nesterov", "momentum", "above 0"};
  if (nesterov && dampening != 0) return OptionMisfit{"nesterov", "dampening", "0"};
  return std::nullopt;
}

UpdateRule Momentum::rule() const {
  if (misfit())
    throw UserError("E0806", "Nesterov momentum needs a momentum and no dampening")
        .saw("momentum = " + shortest(momentum) + ", dampening = " + shortest(dampening))
        .need("momentum > 0 and dampening = 0");
  if (momentum == 0) return rule_of("sgd", PlainSgd());
  return rule_of("momentum", *this);
}

Momentum::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
