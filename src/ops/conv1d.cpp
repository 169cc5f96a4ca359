#include "ops/conv1d.h"

#include "ops/conv2d.h"
#include "ops/extents.h"
#include "ops/image.h"
#include "ops/op.h"
#include "ops/reshape.h"

namespace aloft {
namespace {

using A = Conv1dAttrs;

void infer(const A& a, Infer& c) {
  c.need_count(2, 3);
  c.need_float(0);
  for (int i : {0, 1}) c.need_rank(i, 3, 3);
  for (int i = 1; i < c.count(); ++i) c.need_same_dtype(0, i);
  const Shape &x = c.shape(0), &w = c.shape(1);
  for (int d : {1, 2})
    c.check(x[d].is_constant() && w[d].is_constant(), "a dimension but the batch is symbolic",
            "constant channels and length");
  c.check(a.stride >= 1 && a.padding >= 0 && a.dilation >= 1 && a.groups >= 1,
          "an attribute is out of range", "stride, dilation, groups >= 1 and padding >= 0");
  check_channels(a.groups, x[1], w, "length", c);
  if (c.count() == 3) c.need_shape(2, Shape{w[0]});
  const std::int64_t n = check_places(w[2], x[2], a.stride, a.padding, a.dilation, c);
  c.out(c.dtype(0), Shape{x[0], w[0], n});
}

// [a, b, n] as [a, b, 1, n].
Tensor as_image(const Tensor& t) { return reshape(t, {t.dim(0), t.dim(1), 1, t.dim(2)}); }

std::vector<Tensor> body(const A& a, std::span<const Tensor> in) {
  const Conv2dAttrs image{{1, a.stride}, {0, a.padding}, {1, a.dilation}, a.groups};
  const Tensor y =
      conv2d(as_image(in[0]), as_image(in[1]), in.size() == 3 ? in[2] : Tensor(), image);
  return {reshape(y, {y.dim(0), y.dim(1), y.dim(3)})};
}

void samples(Samples& s) {
  const auto one = [&](A a, Shape x, Shape w, bool bias) {
    std::vector<SampleInput> in = {{std::move(x)}, {w, Fill::Normal, 0, 0, 0.4}};
    if (bias) in.push_back({Shape{w[0]}});
    s.add(a, std::move(in));
  };
  one({}, {2, 3, 11}, {4, 3, 3}, true);
  one({2, 3, 2, 2}, {1, 4, 17}, {6, 2, 4}, true);
  one({1, 1, 1, 3}, {2, 3, 5}, {3, 1, 3}, false);
  one({}, {1, 1, 1}, {1, 1, 1}, true);
  one({3, 0}, {1, 1, 4097}, {2, 1, 5}, false);
  one({}, {0, 2, 4}, {3, 2, 2}, true);
  // In pairs of channels, as conv2d's.
  s.add_special(A{}, {{{2, 4, 17}}, {{6, 4, 3}}, {{6}}}, {0, 1, 2});
}

}  // namespace

std::vector<OpDef> conv1d_ops() {
  return {define<A>({
      .name = "conv1d",
      .doc = "One-dimensional convolution with stride, padding, dilation and groups; NCL.",
      .infer = infer,
      .numeric = Numeric::Narrow,
      .meaning = Body<A>(body),
      .vjp = FromBody{},
      .cost =
          [](const A&, CallTypes in, CallTypes out) {
            Cost c = elementwise_cost(0, in, out);
            c.flops = 2.0 * static_cast<double>(out[0].shape.max_numel()) *
                      static_cast<double>(in[1].shape[1].max() * in[1].shape[2].max());
            return c;
          },
      .labels = "n c *, o c *, o -> n o *",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"Conv", 11},
      .samples = samples,
  })};
}

Tensor conv1d(Operand x, Operand weight, const Tensor& bias, const Conv1dAttrs& attrs) {
  if (!bias.is_defined()) return emit_one("conv1d", to_attrs(attrs), {x, weight});
  return emit_one("conv1d", to_attrs(attrs), {x, weight, bias});
}

}  // namespace aloft
