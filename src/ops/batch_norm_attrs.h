// Attributes of batch_norm and its gradient, for whoever must not see the graph's types.
#pragma once

#include "types/attrs.h"

namespace aloft {

// Options of batch_norm() (ops/batch_norm.h).
struct BatchNormAttrs {
  bool training = true;
  double momentum = 0.1;
  double eps = 1e-5;
  static constexpr auto fields() {
    using A = BatchNormAttrs;
    return FieldList{
        field("training", &A::training, "normalise with the batch's statistics, else the running"),
        field("momentum", &A::momentum,
              "weight of the batch in the new running statistics, 0 to 1"),
        field("eps", &A::eps, "added to the variance")};
  }
};

struct BatchNormGradAttrs {
  bool training = true;
  static constexpr auto fields() {
    return FieldList{field("training", &BatchNormGradAttrs::training,
                           "mean and rstd depend on x: they are the batch's")};
  }
};

}  // namespace aloft
