#include "optim/adafactor.h"

#include "optim/kind_of.h"

namespace aloft::optim {

OptimizerKind adafactor_kind() {
  return kind_of<Adafactor>("adafactor",
                            "mean squares of rows and columns alone (Shazeer and Stern 2018)",
                            {{}, {.beta2_decay = -0.5, .eps_size = 0.25, .clip = 0.5}});
}

UpdateRule Adafactor::rule() const { return rule_of("adafactor", *this); }

Adafactor::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
