#include "optim/muon.h"

#include "optim/kind_of.h"

namespace aloft::optim {

OptimizerKind muon_kind() {
  return kind_of<Muon>("muon",
                       "an orthogonal momentum of matrices, AdamW of the rest (Jordan 2024)",
                       {{}, {.momentum = 0.5, .nesterov = false, .match_adamw = true}});
}

UpdateRule Muon::rule() const { return rule_of("muon", *this); }

Muon::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
