#include "optim/rprop.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice rprop_advice() {
  return {"all data in one batch: it goes by signs, which noise turns",
          "0.1, as the first step (Riedmiller and Braun 1993)"};
}

OptimizerKind rprop_kind() {
  return kind_of<Rprop>(
      "rprop", "steps by signs, sized by their turns (Riedmiller and Braun 1993)",
      {{}, {.eta_minus = 0.25, .eta_plus = 2, .least_size = 0.01, .most_size = 0.5}});
}

UpdateRule Rprop::rule() const { return rule_of("rprop", *this); }

Rprop::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
