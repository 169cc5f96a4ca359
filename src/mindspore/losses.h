// Losses by their names in MindSpore, as functions of outputs and labels.
#pragma once

#include <string>

#include "graph/tensor.h"

namespace aloft::ms {

// mindspore.nn.SoftmaxCrossEntropyWithLogits: of logits [rows, classes], f32.
struct SoftmaxCrossEntropyWithLogits {
  bool sparse = false;             // labels are classes, integers [rows]; else [rows, classes]
  std::string reduction = "none";  // "mean", "sum"; "none": one of each row

  // UserError E0840 for another reduction, and what cross_entropy() refuses.
  Tensor operator()(const Tensor& logits, const Tensor& labels) const;
};

}  // namespace aloft::ms
