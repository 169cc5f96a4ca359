// Batch normalisation of images, with running statistics.
#pragma once

#include "nn/layer.h"

namespace aloft::nn {

// Defaults as torch.nn.BatchNorm2d's.
struct BatchNorm2dOptions {
  double momentum = 0.1;  // weight of the batch in the new running statistics
  double eps = 1e-5;      // added to the variance
};

// Normalises each channel, then scales and shifts it. Parameters: weight, bias [channels]; buffers:
// running_mean, running_var. In training a call normalises with the batch's statistics and updates
// the running ones; in evaluation it uses them.
class BatchNorm2d : public Layer {
 public:
  static constexpr std::string_view kKind = "BatchNorm2d";
  std::string_view kind() const override { return kKind; }

  // UserError E0210 unless channels is positive.
  BatchNorm2d(Module& parent, std::string_view name, std::int64_t channels,
              const BatchNorm2dOptions& options = {});

  Tensor operator()(Operand x) const;  // [N, channels, H, W] -> the same

  VariablePtr weight, bias, running_mean, running_var;  // from 1, 0, 0, 1 on; [channels]

 private:
  BatchNorm2dOptions options_;
};

}  // namespace aloft::nn
