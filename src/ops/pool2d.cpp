#include "ops/pool2d.h"

#include <cmath>
#include <limits>

#include "ops/image.h"
#include "ops/op.h"

namespace aloft {
namespace {

// The pooled shape of `x`.
template <class A>
Shape pooled(const A& a, const Shape& x, Infer& c) {
  check_pair(a.kernel, 1, "kernel", c);
  if (!a.stride.empty()) check_pair(a.stride, 1, "stride", c);
  check_pair(a.padding, 0, "padding", c);
  const Window2d w = windows_of(a);
  Shape y{x[0], x[1]};
  for (int d = 0; d < 2; ++d) {
    const Windows& axis = d == 0 ? w.down : w.right;
    c.check(axis.padding <= axis.kernel / 2, "padding = " + print_attr(a.padding),
            "at most half the kernel, so that every window has an element");
    const std::int64_t n = axis.count(x[2 + d].max());
    c.check(n > 0 && x[2 + d].max() > 0,  // a window of nothing but padding has no element
            "a window of " + std::to_string(axis.kernel) + " does not fit into " + x[2 + d].str(),
            "an input at least as large as the window", "a smaller kernel or more padding");
    y.dims().push_back(n);
  }
  return y;
}

// Calls f(index in y, index of the plane in x, row and column of the window) for each window.
template <class F>
void for_each_window(const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& y,
                     const F& f) {
  std::int64_t at = 0;
  for (std::int64_t plane = 0; plane < x[0] * x[1]; ++plane)
    for (std::int64_t r = 0; r < y[2]; ++r)
      for (std::int64_t k = 0; k < y[3]; ++k, ++at) f(at, plane * x[2] * x[3], r, k);
}

// Flat index of the first maximum of a window; a NaN counts as the largest.
std::int64_t winner(const Window2d& w, const HostArray& x, std::int64_t base, std::int64_t r,
                    std::int64_t k) {
  std::int64_t best = -1;
  for (std::int64_t i = w.down.first(r); i < w.down.last(r, x.shape[2]); ++i)
    for (std::int64_t j = w.right.first(k); j < w.right.last(k, x.shape[3]); ++j) {
      const std::int64_t at = base + i * x.shape[3] + j;
      if (best < 0 || (!std::isnan(x[best]) && (x[at] > x[best] || std::isnan(x[at])))) best = at;
    }
  return best;
}

// Calls f(y index, x index) for the winner of each window.
template <class F>
void for_each_winner(const MaxPool2dAttrs& a, const HostArray& x,
                     const std::vector<std::int64_t>& y, const F& f) {
  const Window2d w = windows_of(a);
  for_each_window(x.shape, y,
                  [&](std::int64_t at, std::int64_t base, std::int64_t r, std::int64_t k) {
                    f(at, winner(w, x, base, r, k));
                  });
}

// Calls f(y index, x index, weight) for each element of each mean.
template <class F>
void for_each_share(const AvgPool2dAttrs& a, const std::vector<std::int64_t>& x,
                    const std::vector<std::int64_t>& y, const F& f) {
  const Window2d w = windows_of(a);
  for_each_window(x, y, [&](std::int64_t at, std::int64_t base, std::int64_t r, std::int64_t k) {
    const auto rows = static_cast<double>(w.down.divisor(r, x[2], a.count_include_pad));
    const auto columns = static_cast<double>(w.right.divisor(k, x[3], a.count_include_pad));
    const double weight = 1 / (rows * columns);
    for (std::int64_t i = w.down.first(r); i < w.down.last(r, x[2]); ++i)
      for (std::int64_t j = w.right.first(k); j < w.right.last(k, x[3]); ++j)
        f(at, base + i * x[3] + j, weight);
  });
}

struct Geometry {
  Shape x;
  Ints kernel, stride, padding;
};

// A stride beside which nothing else adds up in 63 bits.
constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

std::vector<Geometry> geometries() {
  return {{{2, 3, 6, 6}, {2, 2}, {}, {0, 0}},          {{1, 2, 8, 7}, {3, 3}, {2, 2}, {1, 1}},
          {{1, 2, 7, 9}, {3, 2}, {1, 2}, {0, 0}},      {{1, 2, 4, 4}, {2, 2}, {2, 2}, {1, 1}},
          {{1, 1, 1, 1}, {1, 1}, {}, {0, 0}},          {{1, 1, 1, 4097}, {1, 3}, {1, 2}, {0, 1}},
          {{2, 17, 5, 5}, {2, 3}, {1, 1}, {1, 1}},     {{0, 3, 4, 4}, {2, 2}, {}, {0, 0}},
          {{2, 2, 5, 7}, {2, 2}, {}, {0, 0}},          {{1, 1, 66, 71}, {2, 2}, {}, {0, 0}},
          {{1, 1, 4, 5}, {1, 1}, {kFar, kFar}, {0, 0}}};
}

Shape result_of(const Geometry& g) {
  const Window2d w = windows_of(MaxPool2dAttrs{g.kernel, g.stride, g.padding});
  return {g.x[0], g.x[1], w.down.count(g.x[2].max()), w.right.count(g.x[3].max())};
}

SampleInput distinct(const Shape& x) { return {x, Fill::Distinct, -2, 2}; }

Cost cost_of_windows(const Ints& kernel, CallTypes in, CallTypes out, const Shape& pooled) {
  Cost c = elementwise_cost(0, in, out);
  c.flops = static_cast<double>(pooled.max_numel());
  for (const std::int64_t extent : kernel) c.flops *= static_cast<double>(extent);
  return c;
}

// Of the first operand, where the last one has its winners.
void take_winners(const MaxPool2dAttrs& a, EvalCall& c) {
  for_each_winner(a, c.in.back(), c.out[0].shape,
                  [&](std::int64_t y, std::int64_t x) { c.out[0][y] = c.in[0][x]; });
}
void give_to_winners(const MaxPool2dAttrs& a, Vjp& g) {
  if (g.needs(0))
    g.give(0, emit_one("max_pool2d_grad", to_attrs(a), {g.cotangent(0), g.in(g.count() - 1)}));
}

OpDef max_pool2d_op() {
  using A = MaxPool2dAttrs;
  return define<A>({
      .name = "max_pool2d",
      .doc = "Largest element of each window; NaN where one is NaN.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            check_image(0, c);
            c.out(c.dtype(0), pooled(a, c.shape(0), c));
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>(take_winners),
      .vjp = VjpOf<A>(give_to_winners),
      .cost = [](const A& a, CallTypes in,
                 CallTypes out) { return cost_of_windows(a.kernel, in, out, out[0].shape); },
      .labels = "n c * * -> n c * *",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"MaxPool", 12},
      .samples =
          [](Samples& s) {
            for (const Geometry& g : geometries())
              s.add(A{g.kernel, g.stride, g.padding}, {distinct(g.x)});
            s.add(A{}, {{{1, 2, 8, 8}, Fill::Special}}, "special values").gradient = false;
          },
      .only_moves = true,
  });
}

OpDef max_pool2d_grad_op() {
  using A = MaxPool2dAttrs;
  return define<A>({
      .name = "max_pool2d_grad",
      .doc = "Gradient of max_pool2d: dy goes to the first maximum of each window of x.",
      .infer =
          [](const A& a, Infer& c) {
            check_two_images(c);
            c.need_shape(0, pooled(a, c.shape(1), c));
            c.out(c.in(1));
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        for_each_winner(a, c.in[1], c.in[0].shape,
                        [&](std::int64_t y, std::int64_t x) { c.out[0][x] += c.in[0][y]; });
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0))
          g.give(0, emit_one("max_pool2d_select", to_attrs(a), {g.cotangent(0), g.in(1)}));
      }),
      .cost = [](const A& a, CallTypes in,
                 CallTypes out) { return cost_of_windows(a.kernel, in, out, in[0].shape); },
      .labels = "n c * *, n c * * -> n c * *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            for (const Geometry& g : geometries())
              s.add(A{g.kernel, g.stride, g.padding}, {{result_of(g)}, distinct(g.x)});
            s.add(A{}, {{{1, 1, 2, 2}}, {{1, 1, 4, 4}, Fill::Constant, 1, 1}}, "ties").gradient =
                false;
          },
  });
}

OpDef max_pool2d_select_op() {
  using A = MaxPool2dAttrs;
  return define<A>({
      .name = "max_pool2d_select",
      .doc = "The element of the first operand that stands where each window of x has its first "
             "maximum: the gradient of max_pool2d_grad.",
      .infer =
          [](const A& a, Infer& c) {
            check_two_images(c);
            c.need_same_shape(1, 0);
            c.out(c.dtype(0), pooled(a, c.shape(1), c));
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>(take_winners),
      .vjp = VjpOf<A>(give_to_winners),
      .cost = [](const A& a, CallTypes in,
                 CallTypes out) { return cost_of_windows(a.kernel, in, out, out[0].shape); },
      .labels = "n c * *, n c * * -> n c * *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            for (const Geometry& g : geometries())
              s.add(A{g.kernel, g.stride, g.padding}, {{g.x}, distinct(g.x)});
          },
      .only_moves = true,
  });
}

OpDef avg_pool2d_op() {
  using A = AvgPool2dAttrs;
  return define<A>({
      .name = "avg_pool2d",
      .doc = "Mean of each window, with or without counting the padding.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            check_image(0, c);
            c.out(c.dtype(0), pooled(a, c.shape(0), c));
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        for_each_share(a, c.in[0].shape, c.out[0].shape,
                       [&](std::int64_t y, std::int64_t x, double weight) {
                         c.out[0][y] += weight * c.in[0][x];
                       });
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (!g.needs(0)) return;
        const Tensor& x = g.in(0);
        const AvgPool2dGradAttrs to{
            a.kernel, a.stride, a.padding, a.count_include_pad, {x.dim(2).max(), x.dim(3).max()}};
        g.give(0, emit_one("avg_pool2d_grad", to_attrs(to), {g.cotangent(0)}));
      }),
      .cost = [](const A& a, CallTypes in,
                 CallTypes out) { return cost_of_windows(a.kernel, in, out, out[0].shape); },
      .labels = "n c * * -> n c * *",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"AveragePool", 11},
      .samples =
          [](Samples& s) {
            for (const Geometry& g : geometries())
              for (bool counted : {true, false})
                s.add(A{g.kernel, g.stride, g.padding, counted}, {{g.x}});
            s.add(A{}, {{{1, 2, 8, 8}, Fill::Special}}, "special values").gradient = false;
          },
  });
}

OpDef avg_pool2d_grad_op() {
  using A = AvgPool2dGradAttrs;
  return define<A>({
      .name = "avg_pool2d_grad",
      .doc = "Gradient of avg_pool2d: dy is shared out to its window.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            check_image(0, c);
            check_extents(a.extents, 1, c);
            const Shape x{c.shape(0)[0], c.shape(0)[1], a.extents[0], a.extents[1]};
            c.need_shape(0, pooled(a.forward(), x, c));
            c.out(c.dtype(0), x);
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        for_each_share(a.forward(), c.out[0].shape, c.in[0].shape,
                       [&](std::int64_t y, std::int64_t x, double weight) {
                         c.out[0][x] += weight * c.in[0][y];
                       });
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (g.needs(0)) g.give(0, avg_pool2d(g.cotangent(0), a.forward()));
      }),
      .cost = [](const A& a, CallTypes in,
                 CallTypes out) { return cost_of_windows(a.kernel, in, out, in[0].shape); },
      .labels = "n c * * -> n c * *",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            for (const Geometry& g : geometries())
              for (bool counted : {true, false})
                s.add(A{g.kernel, g.stride, g.padding, counted, {g.x[2].max(), g.x[3].max()}},
                      {{result_of(g)}});
          },
  });
}

}  // namespace

std::vector<OpDef> pool2d_ops() {
  return {max_pool2d_op(), max_pool2d_grad_op(), max_pool2d_select_op(), avg_pool2d_op(),
          avg_pool2d_grad_op()};
}

Tensor max_pool2d(Operand x, const MaxPool2dAttrs& attrs) {
  return emit_one("max_pool2d", to_attrs(attrs), {x});
}
Tensor avg_pool2d(Operand x, const AvgPool2dAttrs& attrs) {
  return emit_one("avg_pool2d", to_attrs(attrs), {x});
}

}  // namespace aloft
