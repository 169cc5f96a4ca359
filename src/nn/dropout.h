// Dropout in train mode, nothing in evaluation.
#pragma once

#include "nn/layer.h"

namespace aloft::nn {

class Dropout : public Layer {
 public:
  // UserError E0210 unless 0 <= p < 1.
  Dropout(Module& parent, std::string_view name, double p);

  Tensor operator()(Operand x) const;

 private:
  double p_;
};

}  // namespace aloft::nn
