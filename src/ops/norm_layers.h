// What the definitions of layer_norm, group_norm and batch_norm share: their parameters' check, the
// channels' axis, and the way of a gradient through mean and 1 / deviation.
#pragma once

#include "graph/tensor.h"
#include "ops/declared.h"
#include "ops/infer.h"
#include "ops/vjp.h"

namespace aloft {

// Operand i is a scale or shift of `shape`, in the type of operand x or in f32.
void check_norm_parameter(int i, const Shape& shape, int x, const Infer& c);

// A value a channel, [C], so that it broadcasts against x [N, C, ...].
Tensor channels(const Tensor& p, const Tensor& x);
// All axes of x [N, C, ...] but the channels'.
Ints but_channels(const Tensor& x);

// eps is what a root is kept away from 0 by.
void check_eps(double eps, const Infer& c);

// What other readers of mean and rstd (outputs 1 and 2) than the normalisation itself send back to
// x, which g normalised over `axes`: d mean / dx = 1 / n and d rstd / dx = -rstd^2 xhat / n. At
// least one of the two has a cotangent.
Tensor through_mean_and_rstd(const Tensor& x, const Ints& axes, Vjp& g);

}  // namespace aloft
