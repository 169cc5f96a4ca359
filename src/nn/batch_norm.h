// Batch normalisation of images, with running statistics.
#pragma once

#include "nn/layer.h"

namespace aloft::nn {

struct BatchNorm2dOptions {
  double momentum = 0.1;  // weight of the batch in the new running statistics
  double eps = 1e-5;
};

// Parameters: weight, bias [channels]; buffers: running_mean, running_var. In training a call
// normalises with the batch's statistics and updates the running ones; in evaluation it uses them.
class BatchNorm2d : public Layer {
 public:
  BatchNorm2d(Module& parent, std::string_view name, std::int64_t channels,
              const BatchNorm2dOptions& options = {});

  Tensor operator()(Operand x) const;  // [N, channels, H, W]

  VariablePtr weight, bias, running_mean, running_var;

 private:
  BatchNorm2dOptions options_;
};

}  // namespace aloft::nn
