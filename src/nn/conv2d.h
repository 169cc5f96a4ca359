// Two-dimensional convolution.
#pragma once

#include <optional>

#include "nn/layer.h"

namespace aloft::nn {

// What a Conv2d is, besides its channels and its kernel.
struct Conv2dOptions {
  std::int64_t stride = 1, padding = 0, dilation = 1;  // the same in both directions
  std::int64_t groups = 1;               // channels are split into that many independent groups
  bool bias = true;                      // false: none is added
  std::optional<Init> weight_init = {};  // unset: kaiming_uniform(in / groups * kernel^2)
  std::optional<Init> bias_init = {};    // unset: the same
};

// A square window over images. Parameters: weight [out, in / groups, kernel, kernel], bias [out].
class Conv2d : public Layer {
 public:
  static constexpr std::string_view kKind = "Conv2d";
  std::string_view kind() const override { return kKind; }

  // `in`, `out`: channels; `kernel`: height and width of the window. UserError E0211 unless groups
  // divides both numbers of channels, E0210 unless all are positive.
  Conv2d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
         std::int64_t kernel, const Conv2dOptions& options = {});

  Tensor operator()(Operand x) const;  // [N, in, H, W] -> [N, out, H', W'] (ops/conv2d.h)

  VariablePtr weight, bias;  // bias is null where there is none

 private:
  Conv2dOptions options_;
};

}  // namespace aloft::nn
