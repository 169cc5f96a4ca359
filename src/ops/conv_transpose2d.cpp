#include "ops/conv_transpose2d.h"

#include <algorithm>

#include "ops/binary.h"
#include "ops/conv2d.h"
#include "ops/extents.h"
#include "ops/image.h"
#include "ops/op.h"
#include "ops/pad.h"
#include "ops/reshape.h"

namespace aloft {
namespace {

using A = ConvTranspose2dAttrs;

// The result's extent in direction d, 0 or less where padding cuts off everything; UserError E0103
// beyond 63 bits.
std::int64_t extent_made(const A& a, int d, std::int64_t size, std::int64_t kernel) {
  const std::int64_t steps = extent_product(size - 1, a.stride[d]);
  const std::int64_t window = extent_product(kernel - 1, a.dilation[d]);
  return extent_sum(extent_sum(steps, window), extent_sum(a.output_padding[d], 1)) -
         extent_product(2, a.padding[d]);
}

void check_attrs(const A& a, const Infer& c) {
  check_pair(a.stride, 1, "stride", c);
  check_pair(a.padding, 0, "padding", c);
  check_pair(a.output_padding, 0, "output_padding", c);
  check_pair(a.dilation, 1, "dilation", c);
  c.check(a.groups >= 1, "groups = " + std::to_string(a.groups), "at least 1");
  for (int d : {0, 1})
    c.check(a.output_padding[d] < std::max(a.stride[d], a.dilation[d]),
            "output_padding = " + print_attr(a.output_padding), "less than stride or dilation");
}

void infer(const A& a, Infer& c) {
  check_two_images(c, 3);
  check_attrs(a, c);
  const Shape &x = c.shape(0), &w = c.shape(1);
  c.check(w[0] == x[1], "the weight takes " + w[0].str() + " channels, x has " + x[1].str(),
          "a weight [in, out / groups, height, width]");
  c.check(x[1].max() % a.groups == 0,
          std::to_string(a.groups) + " groups do not divide " + x[1].str() + " channels",
          "a number of groups that divides x's channels");
  Shape y{x[0], extent_product(w[1].max(), a.groups)};
  for (int d : {0, 1}) {
    const std::int64_t size = x[2 + d].max(), kernel = w[2 + d].max();
    c.check(size > 0 && kernel > 0, "an image or a kernel without elements",
            "heights and widths of at least 1");
    const std::int64_t made = extent_made(a, d, size, kernel);
    c.check(made > 0, "the result would be " + std::to_string(made) + " high or wide",
            "a result of at least 1", "less padding");
    check_window(kernel, made, a.padding[d], a.dilation[d], c);
    y.dims().push_back(made);
  }
  if (c.count() == 3) {
    c.need_same_dtype(0, 2);
    c.need_shape(2, Shape{y[1]});
  }
  c.out(c.dtype(0), y);
}

// As conv2d's gradient for an image of the result's extents. Where the output padding holds whole
// strides, a convolution of such an image has more places than x: there x goes on with zeros.
std::vector<Tensor> body(const A& a, std::span<const Tensor> in) {
  Tensor x = in[0];
  const Tensor& w = in[1];
  Conv2dGradAttrs image{a.stride, a.padding, a.dilation, a.groups, {}};
  for (int d : {0, 1}) {
    image.extents.push_back(extent_made(a, d, x.dim(2 + d).max(), w.dim(2 + d).max()));
    if (const std::int64_t more = a.output_padding[d] / a.stride[d]; more > 0)
      x = pad(x, 2 + d, 0, more);
  }
  const Tensor y = conv2d_grad_input(x, w, image);
  if (in.size() < 3) return {y};
  return {y + reshape(in[2], {y.dim(1), 1, 1})};
}

Cost cost(const A&, CallTypes in, CallTypes out) {
  const Shape& w = in[1].shape;
  Cost c = elementwise_cost(0, in, out);
  c.flops = 2.0 * static_cast<double>(in[0].shape.max_numel()) *
            static_cast<double>(w[1].max() * w[2].max() * w[3].max());
  return c;
}

std::vector<Product> products(const A& a, CallTypes in, CallTypes) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  return {{a.groups, (x[0] * x[2] * x[3]).max(), w[1].max(),
           w[0].max() / a.groups * w[2].max() * w[3].max()}};
}

void samples(Samples& s) {
  const auto one = [&](const A& a, const Shape& x, const Shape& w) {
    const SampleInput weight{w, Fill::Normal, 0, 0, 0.4};
    s.add(a, {{x}, weight});
    s.add(a, {{x}, weight, {Shape{w[1] * a.groups}}}, "with a bias");
  };
  one({}, {2, 3, 4, 3}, {3, 4, 3, 3});
  one({{2, 2}, {1, 1}}, {2, 3, 4, 5}, {3, 2, 4, 4});
  one({{2, 3}, {0, 1}, {1, 2}}, {1, 2, 4, 3}, {2, 3, 2, 3});
  one({{1, 1}, {2, 1}, {1, 0}, {2, 2}}, {1, 2, 5, 4}, {2, 3, 3, 3});  // more places than x has
  one({{2, 1}, {1, 1}, {1, 0}, {1, 1}, 2}, {2, 4, 3, 3}, {4, 3, 3, 3});
  one({{2, 2}, {1, 1}, {0, 0}, {1, 1}, 5}, {1, 5, 3, 3}, {5, 1, 3, 3});
  one({}, {2, 17, 1, 1}, {17, 3, 4, 4});
  one({}, {1, 1, 1, 1}, {1, 1, 1, 1});
  one({{1, 2}, {0, 1}}, {1, 1, 1, 2049}, {1, 1, 1, 3});
  one({}, {1, 1, 1, 4097}, {1, 1, 1, 3});
  one({}, {1, 4097, 1, 2}, {4097, 2, 1, 1});
  one({}, {1, 2, 1, 2}, {2, 4097, 1, 1});
  one({{2, 2}, {1, 1}}, {0, 3, 4, 4}, {3, 2, 4, 4});
  // As conv2d's gradient: a window of several elements multiplies an infinite weight by zeros.
  s.add_special(A{}, {{{2, 17, 7, 6}}, {{17, 4, 3, 3}}, {{4}}}, {0, 2});
  s.add_special(A{}, {{{2, 17, 5, 5}}, {{17, 19, 1, 1}}, {{19}}}, {0, 1, 2});
}

}  // namespace

std::vector<OpDef> conv_transpose2d_ops() {
  return {define<A>({
      .name = "conv_transpose2d",
      .doc =
          "Two-dimensional transposed convolution with stride, padding, output padding, dilation "
          "and groups; NCHW. Sums in fp32 or wider, and adds the bias to what is rounded.",
      .infer = infer,
      .numeric = Numeric::Narrow,
      .meaning = Body<A>(body),
      .vjp = FromBody{},
      .cost = cost,
      .labels = "n c * *, c o * *, o -> n o * *",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"ConvTranspose", 11},
      .samples = samples,
      .products = products,
  })};
}

Tensor conv_transpose2d(Operand x, Operand weight, const Tensor& bias,
                        const ConvTranspose2dAttrs& attrs) {
  if (!bias.is_defined()) return emit_one("conv_transpose2d", to_attrs(attrs), {x, weight});
  return emit_one("conv_transpose2d", to_attrs(attrs), {x, weight, bias});
}

}  // namespace aloft
