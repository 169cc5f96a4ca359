// What a step learns from the squares of its gradients: one formula for every back end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace aloft::scalar {

// As torch.nn.utils.clip_grad_norm_ has it.
inline constexpr double kClipEpsilon = 1e-6;

struct GradientVerdict {
  double norm = 0;        // of the gradients without the scale
  double multiplier = 0;  // unscales and clips; 0 where the step is not finite
  bool finite = false;    // the norm is finite in fp32, and so is every element
  int culprit = -1;       // the first gradient, as sought, with an infinity or a NaN
};

// The culprit for `squares(i)`: i of `count` in the order `sought`, or from 0 on where that is
// empty.
template <class Squares>
int find_culprit(int count, const Squares& squares, const std::vector<std::int64_t>& sought) {
  for (int k = 0; k < count; ++k) {
    const int i = sought.empty() ? k : static_cast<int>(sought[k]);
    if (!std::isfinite(squares(i))) return i;
  }
  return -1;
}

// `squares(i)`: the sum of squares of gradient i of `count`, multiplied by scale^2 as they are.
// clip_norm 0: no clipping. They are added from 0 on, whatever `sought` is.
template <class Squares>
GradientVerdict judge_gradients(int count, const Squares& squares, double scale, double clip_norm,
                                const std::vector<std::int64_t>& sought = {}) {
  GradientVerdict v;
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += squares(i);
  if (!std::isfinite(sum)) v.culprit = find_culprit(count, squares, sought);
  v.norm = std::sqrt(sum) / scale;
  v.finite = std::isfinite(static_cast<float>(v.norm));
  const double clip = clip_norm > 0 ? std::min(1.0, clip_norm / (v.norm + kClipEpsilon)) : 1.0;
  v.multiplier = v.finite ? clip / scale : 0.0;
  return v;
}

}  // namespace aloft::scalar
