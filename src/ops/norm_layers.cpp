#include "ops/norm_layers.h"

#include "ops/binary.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/kept_type.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/unary.h"

namespace aloft {

void check_norm_parameter(int i, const Shape& shape, int x, const Infer& c) {
  c.need_shape(i, shape);
  c.check(c.dtype(i) == c.dtype(x) || c.dtype(i) == DType::F32,
          "operand " + std::to_string(i) + " is " + std::string(name_of(c.dtype(i))),
          "x's type or f32");
}

void check_eps(double eps, const Infer& c) {
  c.check(eps >= 0, "eps is " + std::to_string(eps), "0 or more");
}

void check_norm_parameters(const Shape& shape, Infer& c) {
  for (int i = 1; i < c.count(); ++i) check_norm_parameter(i, shape, 0, c);
  if (c.count() == 3) c.need_same_dtype(1, 2);
}

void infer_norm_gradients(const Shape& rows, const Shape& parameter, bool shift, Infer& c) {
  for (int i : {2, 3}) {
    c.need_float(i);
    c.need_shape(i, rows);
  }
  c.need_same_dtype(2, 3);
  c.out(c.in(1));
  if (c.count() < 5) return;
  check_norm_parameter(4, parameter, 1, c);
  c.out(c.in(4));
  if (shift) c.out(c.in(4));
}

Tensor channels(const Tensor& p, const Tensor& x) {
  Shape s{p.dim(0)};
  for (int i = 2; i < x.rank(); ++i) s.dims().push_back(1);
  return reshape(p, s);
}

Ints but_channels(const Tensor& x) {
  Ints axes = {0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  return axes;
}

Standardised standardised(const Tensor& x, const Ints& axes, double eps) {
  const Tensor m = mean(x, axes, true);
  const Tensor centred = x - m;
  const Tensor rstd = rsqrt(mean(square(centred), axes, true) + eps);
  return {centred * rstd, m, rstd};
}

Tensor through_standardised(const Tensor& d, const Tensor& xhat, const Tensor& rstd,
                            const Ints& axes) {
  return rstd * (d - mean(d, axes, true) - xhat * mean(d * xhat, axes, true));
}

void give_norm_gradients(Name grad, const Attrs& attrs, int statistics, Vjp& g,
                         const std::function<Tensor(const Tensor& x)>& through) {
  Tensor dx;
  if (g.has_cotangent(0)) {
    std::vector<Operand> in = {g.cotangent(0), g.in(0)};
    for (int i = 1; i <= statistics; ++i) in.push_back(g.out(i));
    if (g.count() > 1) in.push_back(g.in(1));
    const auto d = emit_op(grad, attrs, in);
    dx = d[0];
    for (int i = 1; i < g.count(); ++i)
      if (g.needs(i)) g.give(i, d[i]);
  }
  if (!g.needs(0)) return;
  bool are_read = false;
  for (int i = 1; i <= statistics; ++i) are_read = are_read || g.has_cotangent(i);
  if (are_read) {
    const Tensor& x = g.in(0);
    Tensor d = cast(through(cast(x, statistics_type(x.dtype()))), x.dtype());
    if (d.shape() != x.shape()) d = reshape(d, x.shape());
    dx = dx.is_defined() ? dx + d : d;
  }
  if (dx.is_defined()) g.give(0, dx);
}

Tensor through_mean_and_rstd(const Tensor& x, const Ints& axes, Vjp& g) {
  const Tensor count = element_count(x, axes, x.dtype());
  const auto wide_row = [&](const Tensor& t) { return expand_reduced(t, x, axes); };
  Tensor dx;
  if (g.has_cotangent(1)) dx = broadcast_like(wide_row(g.cotangent(1) / count), x);
  if (g.has_cotangent(2)) {
    const Tensor& rstd = g.out(2);
    const Tensor each = wide_row(g.cotangent(2) * rstd * rstd * rstd / count);
    const Tensor d = -((x - wide_row(g.out(1))) * each);
    dx = dx.is_defined() ? dx + d : d;
  }
  return dx;
}

}  // namespace aloft
