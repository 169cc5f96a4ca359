#include "ops/norm_layers.h"

#include "ops/binary.h"
#include "ops/broadcast.h"
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
