// Pooling layers: windows over images.
#pragma once

#include "nn/layer.h"

namespace aloft::nn {

struct Pool2dOptions {
  std::int64_t stride = 0;  // 0: the kernel
  std::int64_t padding = 0;
};

class MaxPool2d : public Layer {
 public:
  MaxPool2d(Module& parent, std::string_view name, std::int64_t kernel,
            const Pool2dOptions& options = {});
  Tensor operator()(Operand x) const;  // [N, C, H, W] -> [N, C, H', W'] (ops/pool2d.h)

 private:
  std::int64_t kernel_;
  Pool2dOptions options_;
};

class AvgPool2d : public Layer {
 public:
  AvgPool2d(Module& parent, std::string_view name, std::int64_t kernel,
            const Pool2dOptions& options = {});
  Tensor operator()(Operand x) const;

 private:
  std::int64_t kernel_;
  Pool2dOptions options_;
};

}  // namespace aloft::nn
