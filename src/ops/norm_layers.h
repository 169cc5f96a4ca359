// What the definitions of norms share: their parameters' checks, the channels' axis, the formula
// itself, and the ways of a gradient through it and through mean and 1 / deviation.
#pragma once

#include <functional>
#include <vector>

#include "graph/tensor.h"
#include "ops/declared.h"
#include "ops/infer.h"
#include "ops/vjp.h"

namespace aloft {

// Operand i is a scale or shift of `shape`, in the type of operand x or in f32.
void check_norm_parameter(int i, const Shape& shape, int x, const Infer& c);

// The operands behind x, scale and shift where they are, have `shape` and one type.
void check_norm_parameters(const Shape& shape, Infer& c);
// Of a gradient's operands dy, x, mean, rstd and the scale where it is: the statistics of x's
// `rows`, the scale's shape; gives dx, dscale and, with `shift`, dshift.
void infer_norm_gradients(const Shape& rows, const Shape& parameter, bool shift, Infer& c);

// A value a channel, [C], so that it broadcasts against x [N, C, ...].
Tensor channels(const Tensor& p, const Tensor& x);
// All axes of x [N, C, ...] but the channels'.
Ints but_channels(const Tensor& x);

// eps is what a root is kept away from 0 by.
void check_eps(double eps, const Infer& c);

// x with mean 0 and variance 1 over `axes`, which its statistics keep as extents of 1.
struct Standardised {
  Tensor xhat, mean, rstd;
};
Standardised standardised(const Tensor& x, const Ints& axes, double eps);
// dx from d, the cotangent of xhat: rstd (d - mean(d) - xhat mean(d xhat)).
Tensor through_standardised(const Tensor& d, const Tensor& xhat, const Tensor& rstd,
                            const Ints& axes);

// The gradients of a norm whose outputs are y and then `statistics` of its rows. Where y has
// readers, those of op `grad`: of dy, x, the statistics and the scale where it is. Where only the
// statistics have, and of them, `through`: from x in the statistics' type to what they send back.
void give_norm_gradients(Name grad, const Attrs& attrs, int statistics, Vjp& g,
                         const std::function<Tensor(const Tensor& x)>& through);

// What other readers of mean and rstd (outputs 1 and 2) than the normalisation itself send back to
// x, which g normalised over `axes`: d mean / dx = 1 / n and d rstd / dx = -rstd^2 xhat / n. At
// least one of the two has a cotangent.
Tensor through_mean_and_rstd(const Tensor& x, const Ints& axes, Vjp& g);

}  // namespace aloft
