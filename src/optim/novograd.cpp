#include "optim/novograd.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice novograd_advice() {
  return {"speech, convnets; half of Adam's states", "1e-2 (speech, NVIDIA NeMo)"};
}

OptimizerKind novograd_kind() {
  OptimizerKind k =
      kind_of<NovoGrad>("novograd", "a momentum at each tensor's gradient norm (Ginsburg 2019)",
                        {{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01}});
  constexpr std::string_view kFirst = "the first norm is the first step's, as in the paper";
  k.foreign = {
      {"optimizer.bias_correction", "false", kFirst},
      {"optimizer.init_zero", "false", kFirst},
      {"optimizer.reg_inside_moment", "true", "the decay is part of the momentum, as in the paper"},
      {"optimizer.norm_type", "2", "norms are roots of sums of squares"},
      {"optimizer.grad_averaging", "false",
       "the momentum is a sum, as in the paper: a mean is an lr of 1 - beta1 times as much"}};
  k.formulas[0].text.assign(NovoGrad::kEquations.begin(), NovoGrad::kEquations.end());
  return k;
}

UpdateRule NovoGrad::rule() const { return rule_of("novograd", *this); }

NovoGrad::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
