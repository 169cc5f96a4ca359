// Two-dimensional convolution.
#pragma once

#include <optional>

#include "nn/layer.h"

namespace aloft::nn {

struct Conv2dOptions {
  std::int64_t stride = 1, padding = 0, dilation = 1;  // the same in both directions
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Init> weight_init = {};  // unset: kaiming_uniform(in / groups * kernel^2)
  std::optional<Init> bias_init = {};    // unset: the same
};

// Parameters: weight [out, in / groups, kernel, kernel], bias [out].
class Conv2d : public Layer {
 public:
  // UserError E0211 unless groups divides both numbers of channels.
  Conv2d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
         std::int64_t kernel, const Conv2dOptions& options = {});

  Tensor operator()(Operand x) const;  // [N, in, H, W] -> [N, out, H', W'] (ops/conv2d.h)

  VariablePtr weight, bias;

 private:
  Conv2dOptions options_;
};

}  // namespace aloft::nn
