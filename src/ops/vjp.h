// What an op's gradient sees: inputs, outputs and cotangents as Tensors; what it gives: the
// cotangent of each input that needs one. Written with the same op calls as user code, so it is
// itself differentiable, traceable and executable at once.
#pragma once

#include <span>
#include <vector>

#include "graph/tensor.h"

namespace aloft {

class Vjp {
 public:
  Vjp(std::span<const Tensor> in, std::span<const Tensor> out, std::span<const Tensor> cotangents,
      std::vector<bool> needed)
      : in_(in),
        out_(out),
        cotangents_(cotangents),
        needed_(std::move(needed)),
        given_(in.size()) {}

  int count() const { return static_cast<int>(in_.size()); }
  const Tensor& in(int i) const { return in_[i]; }
  const Tensor& out(int i) const { return out_[i]; }
  // Undefined where nothing downstream depends on output i.
  const Tensor& cotangent(int i) const { return cotangents_[i]; }
  bool has_cotangent(int i) const { return cotangents_[i].is_defined(); }
  // Whether anybody wants the gradient of input i.
  bool needs(int i) const { return needed_[i]; }
  // The cotangent of input i: same shape and element type as the input.
  void give(int i, const Tensor& t) { given_[i] = t; }
  const std::vector<Tensor>& given() const { return given_; }

 private:
  std::span<const Tensor> in_, out_, cotangents_;
  std::vector<bool> needed_;
  std::vector<Tensor> given_;
};

}  // namespace aloft
