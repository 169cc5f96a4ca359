// Two-dimensional transposed convolution.
#pragma once

#include <optional>

#include "nn/layer.h"

namespace aloft::nn {

// What a ConvTranspose2d is, besides its channels and its kernel.
struct ConvTranspose2dOptions {
  // The same in both directions, as all but weight_init and bias_init.
  std::int64_t stride = 1, padding = 0;
  std::int64_t output_padding = 0;       // more of the result, below and at the right
  std::int64_t dilation = 1;             // distance of the kernel's elements
  std::int64_t groups = 1;               // channels are split into that many independent groups
  bool bias = true;                      // false: none is added
  std::optional<Init> weight_init = {};  // unset: kaiming_uniform(out / groups * kernel^2)
  std::optional<Init> bias_init = {};    // unset: the same
};

// A square window that is laid over larger images. Parameters: weight [in, out / groups, kernel,
// kernel], bias [out].
class ConvTranspose2d : public Layer {
 public:
  static constexpr std::string_view kKind = "ConvTranspose2d";
  std::string_view kind() const override { return kKind; }

  // `in`, `out`: channels; `kernel`: height and width of the window. UserError E0211 unless groups
  // divides both numbers of channels, E0210 unless all are positive.
  ConvTranspose2d(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
                  std::int64_t kernel, const ConvTranspose2dOptions& options = {});

  Tensor operator()(Operand x) const;  // [N, in, H, W] -> [N, out, H', W']
                                       // (ops/conv_transpose2d.h)

  VariablePtr weight, bias;  // bias is null where there is none

 private:
  ConvTranspose2dOptions options_;
};

}  // namespace aloft::nn
