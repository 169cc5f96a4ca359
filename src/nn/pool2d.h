// Pooling layers: windows over images.
#pragma once

#include "nn/layer.h"

namespace aloft::nn {

// How the window goes over the image, in both directions alike.
struct Pool2dOptions {
  std::int64_t stride = 0;   // 0: the kernel
  std::int64_t padding = 0;  // on each side; at most half the kernel
};

// The largest element of each window of kernel x kernel elements.
class MaxPool2d : public Layer {
 public:
  static constexpr std::string_view kKind = "MaxPool2d";
  std::string_view kind() const override { return kKind; }

  // `kernel`: height and width of the window. UserError E0210 unless it is positive,
  // and the stride is not negative.
  MaxPool2d(Module& parent, std::string_view name, std::int64_t kernel,
            const Pool2dOptions& options = {});
  Tensor operator()(Operand x) const;  // [N, C, H, W] -> [N, C, H', W'] (ops/pool2d.h)

 private:
  std::int64_t kernel_;
  Pool2dOptions options_;
};

// The mean of each window of kernel x kernel elements, padding counted as zeros.
class AvgPool2d : public Layer {
 public:
  static constexpr std::string_view kKind = "AvgPool2d";
  std::string_view kind() const override { return kKind; }

  // `kernel`: height and width of the window. UserError E0210 unless it is positive,
  // and the stride is not negative.
  AvgPool2d(Module& parent, std::string_view name, std::int64_t kernel,
            const Pool2dOptions& options = {});
  Tensor operator()(Operand x) const;  // [N, C, H, W] -> [N, C, H', W'] (ops/pool2d.h)

 private:
  std::int64_t kernel_;
  Pool2dOptions options_;
};

}  // namespace aloft::nn
