// Dropout in train mode, nothing in evaluation.
#pragma once

#include "nn/layer.h"

namespace aloft::nn {

// In train mode each element is 0 with probability p, drawn anew in each call, and the others are
// divided by 1 - p; in evaluation nothing happens.
class Dropout : public Layer {
 public:
  static constexpr std::string_view kKind = "Dropout";
  std::string_view kind() const override { return kKind; }

  // UserError E0210 unless 0 <= p < 1.
  Dropout(Module& parent, std::string_view name, double p);

  Tensor operator()(Operand x) const;  // [...] -> [...]

 private:
  double p_;
};

}  // namespace aloft::nn
