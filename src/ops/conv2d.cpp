#include "ops/conv2d.h"

#include "ops/image.h"
#include "ops/op.h"
#include "ops/reduce.h"

namespace aloft {
namespace {

Conv2dGradAttrs with_extents(const Conv2dAttrs& a, Dim height, Dim width) {
  return {a.stride, a.padding, a.dilation, a.groups, {height.max(), width.max()}};
}

void check_attrs(const Conv2dAttrs& a, Infer& c) {
  check_pair(a.stride, 1, "stride", c);
  check_pair(a.padding, 0, "padding", c);
  check_pair(a.dilation, 1, "dilation", c);
  c.check(a.groups >= 1, "groups = " + std::to_string(a.groups), "at least 1");
}

// Shape of the convolution's result, after checking that x and weight go together.
Shape result_shape(const Conv2dAttrs& a, const Shape& x, const Shape& w, Infer& c) {
  check_channels(a.groups, x[1], w, "height, width", c);
  Shape y{x[0], w[0]};
  for (int d = 0; d < 2; ++d)
    y.dims().push_back(
        check_places(w[2 + d], x[2 + d], a.stride[d], a.padding[d], a.dilation[d], c));
  return y;
}

// Calls f(x index, weight index, y index) for every product of the convolution.
template <class F>
void for_each_product(const Conv2dAttrs& a, const std::vector<std::int64_t>& x,
                      const std::vector<std::int64_t>& w, const std::vector<std::int64_t>& y,
                      const F& f) {
  const std::int64_t in = w[1], out = w[0] / a.groups;  // channels of one group
  for (std::int64_t image = 0; image < y[0]; ++image)
    for (std::int64_t o = 0; o < w[0]; ++o)
      for (std::int64_t row = 0; row < y[2]; ++row)
        for (std::int64_t column = 0; column < y[3]; ++column)
          for (std::int64_t i = 0; i < in; ++i)
            for (std::int64_t r = 0; r < w[2]; ++r)
              for (std::int64_t k = 0; k < w[3]; ++k) {
                const std::int64_t from_row = row * a.stride[0] - a.padding[0] + r * a.dilation[0];
                const std::int64_t from = column * a.stride[1] - a.padding[1] + k * a.dilation[1];
                if (from_row < 0 || from_row >= x[2] || from < 0 || from >= x[3]) continue;
                const std::int64_t channel = o / out * in + i;
                f(((image * x[1] + channel) * x[2] + from_row) * x[3] + from,
                  ((o * in + i) * w[2] + r) * w[3] + k,
                  ((image * w[0] + o) * y[2] + row) * y[3] + column);
              }
}

Cost product_cost(const Shape& y, const Shape& w, CallTypes in, CallTypes out) {
  Cost c = elementwise_cost(0, in, out);
  c.flops = 2.0 * static_cast<double>(y.max_numel()) *
            static_cast<double>(w[1].max() * w[2].max() * w[3].max());
  return c;
}

// The convolutions as matrix products of unfolded windows.
struct Unfolded {
  std::int64_t groups, pixels, in, out, window;  // channels of one group; pixels of y
  Unfolded(std::int64_t g, const Shape& y, const Shape& w)
      : groups(g),
        pixels((y[0] * y[2] * y[3]).max()),
        in(w[1].max()),
        out(w[0].max() / g),
        window(w[2].max() * w[3].max()) {}
};

// Sample geometries: x, weight, attributes.
struct Geometry {
  Shape x, w;
  Conv2dAttrs attrs;
};

std::vector<Geometry> geometries() {
  return {{{2, 3, 6, 5}, {4, 3, 3, 3}, {}},
          {{2, 3, 7, 8}, {4, 3, 3, 3}, {{2, 2}, {1, 1}}},
          {{1, 2, 9, 7}, {3, 2, 2, 3}, {{2, 1}, {0, 2}}},
          {{1, 2, 9, 9}, {3, 2, 3, 3}, {{1, 1}, {2, 2}, {2, 2}}},
          {{2, 4, 5, 5}, {6, 2, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 2}},
          {{1, 5, 6, 6}, {5, 1, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 5}},
          {{2, 3, 4, 4}, {5, 3, 1, 1}, {}},
          {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
          {{1, 1, 1, 4097}, {1, 1, 1, 3}, {{1, 2}, {0, 1}}},
          {{1, 1, 1, 4099}, {1, 1, 1, 3}, {}},
          {{1, 4097, 1, 2}, {2, 4097, 1, 1}, {}},
          {{1, 2, 1, 2}, {4097, 2, 1, 1}, {}},
          {{1, 17, 4, 4}, {17, 17, 3, 3}, {{1, 1}, {1, 1}}},
          {{3, 5, 3, 3}, {256, 5, 3, 3}, {{1, 1}, {1, 1}}},
          {{2, 256, 1, 1}, {512, 256, 3, 3}, {{1, 1}, {1, 1}}},
          {{2, 3, 5, 6}, {256, 3, 3, 2}, {{2, 2}, {1, 0}}},
          {{0, 3, 4, 4}, {2, 3, 3, 3}, {}}};
}

// For special values nothing is padded, and channels come in pairs: around an image, and for a lone
// channel in bf16, the library multiplies by zeros, and an infinity with them is NaN.
Geometry unpadded() { return {{2, 4, 9, 8}, {17, 4, 3, 3}, {}}; }
Geometry by_pixel() { return {{2, 19, 5, 5}, {17, 19, 1, 1}, {}}; }

Shape result_of(const Geometry& g) {
  Shape y{g.x[0], g.w[0]};
  for (int d = 0; d < 2; ++d)
    y.dims().push_back(window_count(g.x[2 + d].max(), g.w[2 + d].max(), g.attrs.stride[d],
                                    g.attrs.padding[d], g.attrs.dilation[d]));
  return y;
}

OpDef conv2d_op() {
  using A = Conv2dAttrs;
  return define<A>({
      .name = "conv2d",
      .doc = "Two-dimensional convolution with stride, padding, dilation and groups; NCHW. Sums in "
             "fp32 or wider. In bf16 an infinity may be NaN, beside the windows that hold it too.",
      .infer =
          [](const A& a, Infer& c) {
            check_two_images(c, 3);
            check_attrs(a, c);
            const Shape y = result_shape(a, c.shape(0), c.shape(1), c);
            if (c.count() == 3) {
              c.need_same_dtype(0, 2);
              c.need_shape(2, Shape{c.shape(1)[0]});
            }
            c.out(c.dtype(0), y);
          },
      .numeric = Numeric::Narrow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        const HostArray &x = c.in[0], &w = c.in[1];
        HostArray& y = c.out[0];
        const std::int64_t area = y.shape[2] * y.shape[3];
        if (c.in.size() == 3)
          for (std::int64_t i = 0; i < y.numel(); ++i) y[i] = c.in[2][i / area % y.shape[1]];
        for_each_product(
            a, x.shape, w.shape, y.shape,
            [&](std::int64_t i, std::int64_t j, std::int64_t k) { y[k] += x[i] * w[j]; });
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        const Tensor &x = g.in(0), &w = g.in(1), &dy = g.cotangent(0);
        if (g.needs(0)) g.give(0, conv2d_grad_input(dy, w, with_extents(a, x.dim(2), x.dim(3))));
        if (g.needs(1)) g.give(1, conv2d_grad_weight(x, dy, with_extents(a, w.dim(2), w.dim(3))));
        if (g.count() == 3 && g.needs(2)) g.give(2, sum(dy, {0, 2, 3}));
      }),
      .cost = [](const A&, CallTypes in,
                 CallTypes out) { return product_cost(out[0].shape, in[1].shape, in, out); },
      .labels = "n c * *, o c * *, o -> n o * *",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"Conv", 11},
      .samples =
          [](Samples& s) {
            for (const Geometry& g : geometries()) {
              s.add(g.attrs, {{g.x}, {g.w, Fill::Normal, 0, 0, 0.4}});
              s.add(g.attrs, {{g.x}, {g.w, Fill::Normal, 0, 0, 0.4}, {Shape{g.w[0]}}},
                    "with a bias");
            }
            for (const Geometry& g : {unpadded(), by_pixel()})
              s.add_special(g.attrs, {{g.x}, {g.w}, {Shape{g.w[0]}}}, {0, 1, 2});
          },
      .products = [](const A& a, CallTypes in, CallTypes out) -> std::vector<Product> {
        const Unfolded u(a.groups, out[0].shape, in[1].shape);
        return {{u.groups, u.pixels, u.out, u.in * u.window}};
      },
  });
}

OpDef conv2d_grad_input_op() {
  using A = Conv2dGradAttrs;
  return define<A>({
      .name = "conv2d_grad_input",
      .doc = "Gradient of conv2d for its input, from dy and the weight.",
      .infer =
          [](const A& a, Infer& c) {
            check_two_images(c);
            check_attrs(a.forward(), c);
            check_extents(a.extents, 0, c);
            const Shape x{c.shape(0)[0], extent_product(c.shape(1)[1].max(), a.groups),
                          a.extents[0], a.extents[1]};
            c.need_shape(0, result_shape(a.forward(), x, c.shape(1), c));
            c.out(c.dtype(0), x);
          },
      .numeric = Numeric::Narrow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        const HostArray &dy = c.in[0], &w = c.in[1];
        HostArray& dx = c.out[0];
        for_each_product(
            a.forward(), dx.shape, w.shape, dy.shape,
            [&](std::int64_t i, std::int64_t j, std::int64_t k) { dx[i] += dy[k] * w[j]; });
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        const Tensor &w = g.in(1), &ddx = g.cotangent(0);
        if (g.needs(0)) g.give(0, conv2d(ddx, w, {}, a.forward()));
        if (g.needs(1))
          g.give(1,
                 conv2d_grad_weight(ddx, g.in(0), with_extents(a.forward(), w.dim(2), w.dim(3))));
      }),
      .cost = [](const A&, CallTypes in,
                 CallTypes out) { return product_cost(in[0].shape, in[1].shape, in, out); },
      .labels = "n o * *, o c * * -> n c * *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            for (const Geometry& g : geometries())
              s.add(with_extents(g.attrs, g.x[2], g.x[3]),
                    {{result_of(g)}, {g.w, Fill::Normal, 0, 0, 0.4}});
            for (const Geometry& g : {unpadded(), by_pixel()})
              s.add_special(with_extents({}, g.x[2], g.x[3]), {{result_of(g)}, {g.w}}, {0});
            const Geometry g = by_pixel();
            s.add_special(with_extents({}, g.x[2], g.x[3]), {{result_of(g)}, {g.w}}, {1});
          },
      .products = [](const A& a, CallTypes in, CallTypes) -> std::vector<Product> {
        const Unfolded u(a.groups, in[0].shape, in[1].shape);
        return {{u.groups, u.pixels, u.in, u.out * u.window}};
      },
  });
}

OpDef conv2d_grad_weight_op() {
  using A = Conv2dGradAttrs;
  return define<A>({
      .name = "conv2d_grad_weight",
      .doc = "Gradient of conv2d for its weight, from x and dy.",
      .infer =
          [](const A& a, Infer& c) {
            check_two_images(c);
            check_attrs(a.forward(), c);
            check_extents(a.extents, 1, c);
            const Shape w{c.shape(1)[1], c.shape(0)[1].max() / a.groups, a.extents[0],
                          a.extents[1]};
            c.need_shape(1, result_shape(a.forward(), c.shape(0), w, c));
            c.out(c.dtype(0), w);
          },
      .numeric = Numeric::Narrow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        const HostArray &x = c.in[0], &dy = c.in[1];
        HostArray& dw = c.out[0];
        for_each_product(
            a.forward(), x.shape, dw.shape, dy.shape,
            [&](std::int64_t i, std::int64_t j, std::int64_t k) { dw[j] += x[i] * dy[k]; });
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        const Tensor &x = g.in(0), &ddw = g.cotangent(0);
        if (g.needs(0))
          g.give(0, conv2d_grad_input(g.in(1), ddw, with_extents(a.forward(), x.dim(2), x.dim(3))));
        if (g.needs(1)) g.give(1, conv2d(x, ddw, {}, a.forward()));
      }),
      .cost = [](const A&, CallTypes in,
                 CallTypes out) { return product_cost(in[1].shape, out[0].shape, in, out); },
      .labels = "n c * *, n o * * -> o c * *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            for (const Geometry& g : geometries())
              s.add(with_extents(g.attrs, g.w[2], g.w[3]), {{g.x}, {result_of(g)}});
            for (const Geometry& g : {unpadded(), by_pixel()})
              s.add_special(with_extents({}, g.w[2], g.w[3]), {{g.x}, {result_of(g)}}, {0, 1});
          },
      .products = [](const A& a, CallTypes in, CallTypes out) -> std::vector<Product> {
        const Unfolded u(a.groups, in[1].shape, out[0].shape);
        return {{u.groups, u.out, u.in * u.window, u.pixels, true}};
      },
  });
}

}  // namespace

std::vector<OpDef> conv2d_ops() {
  return {conv2d_op(), conv2d_grad_input_op(), conv2d_grad_weight_op()};
}

Tensor conv2d(Operand x, Operand weight, const Tensor& bias, const Conv2dAttrs& attrs) {
  if (!bias.is_defined()) return emit_one("conv2d", to_attrs(attrs), {x, weight});
  return emit_one("conv2d", to_attrs(attrs), {x, weight, bias});
}
Tensor conv2d_grad_input(Operand dy, Operand weight, const Conv2dGradAttrs& attrs) {
  return emit_one("conv2d_grad_input", to_attrs(attrs), {dy, weight});
}
Tensor conv2d_grad_weight(Operand x, Operand dy, const Conv2dGradAttrs& attrs) {
  return emit_one("conv2d_grad_weight", to_attrs(attrs), {x, dy});
}

}  // namespace aloft
