// What a step learns from the squares of its gradients: one formula for every back end.
#pragma once

#include <algorithm>
#include <cmath>

namespace aloft::scalar {

// As torch.nn.utils.clip_grad_norm_ has it.
inline constexpr double kClipEpsilon = 1e-6;

struct GradientVerdict {
  double norm = 0;        // of the gradients without the scale
  double multiplier = 0;  // unscales and clips; 0 where the step is not finite
  bool finite = false;    // the norm is finite in fp32, and so is every element
  int culprit = -1;       // the first gradient with an infinity or a NaN
};

// `squares(i)`: the sum of squares of gradient i of `count`, multiplied by scale^2 as they are.
// clip_norm 0: no clipping.
template <class Squares>
GradientVerdict judge_gradients(int count, const Squares& squares, double scale, double clip_norm) {
  GradientVerdict v;
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    const double s = squares(i);
    if (v.culprit < 0 && !std::isfinite(s)) v.culprit = i;
    sum += s;
  }
  v.norm = std::sqrt(sum) / scale;
  v.finite = std::isfinite(static_cast<float>(v.norm));
  const double clip = clip_norm > 0 ? std::min(1.0, clip_norm / (v.norm + kClipEpsilon)) : 1.0;
  v.multiplier = v.finite ? clip / scale : 0.0;
  return v;
}

}  // namespace aloft::scalar
