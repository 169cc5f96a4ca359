#include "optim/lars.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice lars_advice() {
  return {"convnets, batches of thousands", "31.2 for a batch of 32,768 (ResNet-50 of MLPerf)"};
}

OptimizerKind lars_kind() {
  OptimizerKind k = kind_of<Lars>("lars", "a momentum at each tensor's own norm (You et al. 2017)",
                                  {{}, {.momentum = 0.5, .trust = 0.25, .eps = 0.01}});
  k.foreign = {
      {"optimizer.clip", "false",
       "a tensor's own rate has no bound; clip_adaptive bounds gradients by their weights"}};
  return k;
}

UpdateRule Lars::rule() const { return rule_of("lars", *this); }

Lars::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
