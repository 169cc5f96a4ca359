#include "optim/muon.h"

#include <string>

#include "base/error.h"
#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice muon_advice() {
  return {"hidden matrices of transformers",
          "2e-2, the rest 3e-4 (program of Jordan 2024); match_adamw: AdamW's (Liu et al. 2025)"};
}

OptimizerKind muon_kind() {
  OptimizerKind k =
      kind_of<Muon>("muon", "an orthogonal momentum of matrices, AdamW of the rest (Jordan 2024)",
                    {{}, {.momentum = 0.5, .nesterov = false, .match_adamw = true}});
  k.foreign = {{"optimizer.ns_steps", "5", "the iteration's coefficients are made for five steps"}};
  k.formulas[0].text.assign(Muon::kEquations.begin(), Muon::kEquations.end());
  return k;
}

UpdateRule Muon::rule() const {
  if (ns_steps != kIterations)
    throw UserError("E0814", "a number of the optimizer is out of range")
        .saw("ns_steps = " + std::to_string(ns_steps))
        .need("5: the coefficients of the iteration are made for five steps");
  return rule_of("muon", *this);
}

Muon::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
