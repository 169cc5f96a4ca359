// A stack of dense layers with an activation between: the smallest model there is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nn/linear.h"
#include "ops/activation.h"

namespace aloft::models {

// Linear layers, with `activation` between them and not behind the last.
class Mlp : public nn::Layer {
 public:
  // widths {784, 512, 10}: two layers, named 0 and 1. UserError E0210 unless there are two or more,
  // all positive.
  explicit Mlp(const std::vector<std::int64_t>& widths, Tensor (*activation)(Operand) = gelu)
      : activation_(activation) {
    nn::need_positive(static_cast<std::int64_t>(widths.size()) - 1, "Mlp: layers");
    for (std::size_t i = 0; i + 1 < widths.size(); ++i)
      layers_.push_back(
          std::make_unique<nn::Linear>(*this, std::to_string(i), widths[i], widths[i + 1]));
  }

  Tensor operator()(Operand x) const {  // [B, widths.front()] -> [B, widths.back()]
    return call(x, [&](Tensor t) {
      for (std::size_t i = 0; i < layers_.size(); ++i) {
        if (i > 0) t = activation_(t);
        t = (*layers_[i])(t);
      }
      return t;
    });
  }

 private:
  Tensor (*activation_)(Operand);
  std::vector<std::unique_ptr<nn::Linear>> layers_;
};

}  // namespace aloft::models
