// Max and average pooling and their gradients: planes shared out to the pool, sums in f32 (of f64
// in double) and rounded once. Gradients are gathered (each element of x asks the windows that hold
// it), so that nothing is added up in a narrow type and no two threads write one place.
#include "ops/pool2d.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "backends/cpu/conv/pool_pairs.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vectors/tiles.h"
#include "runtime/kernel.h"
#include "scalar/float_formats.h"

namespace aloft::cpu {
namespace {

struct Geometry : Window2d {
  std::int64_t height = 0, width = 0, out_height = 0, out_width = 0;
  bool count_padding = true;
  Extent planes;
  std::int64_t x_plane() const { return height * width; }
  std::int64_t y_plane() const { return out_height * out_width; }
  std::int64_t window_cost() const {
    return std::min(down.kernel, height) * std::min(right.kernel, width);
  }
};

template <class A>
Geometry geometry_of(const CallSpec& call, const Shape& x, const Shape& y) {
  const auto a = from_attrs<A>(call.attrs);
  Geometry g{windows_of(a)};
  g.height = x[2].max(), g.width = x[3].max();
  g.out_height = y[2].max(), g.out_width = y[3].max();
  if constexpr (requires { a.count_include_pad; }) g.count_padding = a.count_include_pad;
  g.planes = extent_of(x[0] * x[1], call);
  return g;
}

// What an element is compared and summed in.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
template <class T>
Wide<T> wide(T x) {
  if constexpr (std::is_same_v<T, double>)
    return x;
  else
    return scalar::f32_of(x);
}
template <class T>
T rounded(Wide<T> x) {
  if constexpr (std::is_same_v<T, double>)
    return x;
  else
    return scalar::round_to<T>(x);
}

// Windows [begin, end) of an axis that hold position `i`.
struct Holders {
  std::int64_t begin, end;
};
Holders holders_of(const Windows& w, std::int64_t i, std::int64_t count) {
  const std::int64_t from = i + w.padding - w.kernel + 1;
  return {from <= 0 ? 0 : (from - 1) / w.stride + 1,
          std::min(count, (i + w.padding) / w.stride + 1)};
}

// The first maximum of window (r, c) of a plane, NaN counting as the largest.
template <class T>
std::int64_t winner(const Geometry& g, const T* x, std::int64_t r, std::int64_t c) {
  std::int64_t best = -1;
  Wide<T> top = 0;
  for (std::int64_t i = g.down.first(r); i < g.down.last(r, g.height); ++i)
    for (std::int64_t j = g.right.first(c); j < g.right.last(c, g.width); ++j) {
      const Wide<T> v = wide(x[i * g.width + j]);
      if (best >= 0 && !(v > top || v != v)) continue;
      best = i * g.width + j;
      top = v;
      if (v != v) return best;
    }
  return best;
}

// y[window] = of(where its plane begins in x, row, column)
template <class T, class Of>
void for_windows(const Geometry& g, const RunArgs& args, const Of& of) {
  T* y = static_cast<T*>(args.out[0]);
  parallel_for(g.planes.at(args.symbols), g.y_plane() * g.window_cost(),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t p = begin; p < end; ++p)
                   for (std::int64_t r = 0; r < g.out_height; ++r)
                     for (std::int64_t c = 0; c < g.out_width; ++c)
                       y[p * g.y_plane() + r * g.out_width + c] = of(p * g.x_plane(), r, c);
               });
}

// Of each window the element of `from` where x has its winner.
template <class T>
void select(const Geometry& g, const RunArgs& args, const void* from_of, const void* x_of) {
  const T *from = static_cast<const T*>(from_of), *x = static_cast<const T*>(x_of);
  for_windows<T>(g, args, [&](std::int64_t plane, std::int64_t r, std::int64_t c) {
    return from[plane + winner(g, x + plane, r, c)];
  });
}

// dx[i] = sum of share(plane, row, column, window row, window column) over the windows holding i
template <class T, class Share>
void gather(const Geometry& g, const RunArgs& args, const Share& share) {
  T* dx = static_cast<T*>(args.out[0]);
  parallel_for(g.planes.at(args.symbols), g.x_plane() * g.window_cost(),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t p = begin; p < end; ++p)
                   for (std::int64_t i = 0; i < g.height; ++i) {
                     const Holders rows = holders_of(g.down, i, g.out_height);
                     for (std::int64_t j = 0; j < g.width; ++j) {
                       const Holders columns = holders_of(g.right, j, g.out_width);
                       Wide<T> sum = 0;
                       for (std::int64_t r = rows.begin; r < rows.end; ++r)
                         for (std::int64_t c = columns.begin; c < columns.end; ++c)
                           sum += share(p, i, j, r, c);
                       dx[p * g.x_plane() + i * g.width + j] = rounded<T>(sum);
                     }
                   }
               });
}

template <class T>
void max_grad(const Geometry& g, const RunArgs& args) {
  const T *dy = static_cast<const T*>(args.in[0]), *x = static_cast<const T*>(args.in[1]);
  gather<T>(g, args,
            [&](std::int64_t p, std::int64_t i, std::int64_t j, std::int64_t r, std::int64_t c) {
              if (winner(g, x + p * g.x_plane(), r, c) != i * g.width + j) return Wide<T>{0};
              return wide(dy[p * g.y_plane() + r * g.out_width + c]);
            });
}

template <class T>
Wide<T> divisor(const Geometry& g, std::int64_t r, std::int64_t c) {
  // A window of nothing but uncounted padding has the mean 0.
  const auto rows = static_cast<double>(g.down.divisor(r, g.height, g.count_padding));
  const auto columns = static_cast<double>(g.right.divisor(c, g.width, g.count_padding));
  return std::max(Wide<T>{1}, static_cast<Wide<T>>(rows * columns));
}

template <class T>
void average(const Geometry& g, const RunArgs& args) {
  const T* x = static_cast<const T*>(args.in[0]);
  for_windows<T>(g, args, [&](std::int64_t plane, std::int64_t r, std::int64_t c) {
    Wide<T> sum = 0;
    for (std::int64_t i = g.down.first(r); i < g.down.last(r, g.height); ++i)
      for (std::int64_t j = g.right.first(c); j < g.right.last(c, g.width); ++j)
        sum += wide(x[plane + i * g.width + j]);
    return rounded<T>(sum / divisor<T>(g, r, c));
  });
}

template <class T>
void average_grad(const Geometry& g, const RunArgs& args) {
  const T* dy = static_cast<const T*>(args.in[0]);
  gather<T>(g, args,
            [&](std::int64_t p, std::int64_t, std::int64_t, std::int64_t r, std::int64_t c) {
              return wide(dy[p * g.y_plane() + r * g.out_width + c]) / divisor<T>(g, r, c);
            });
}

// Windows of 2 x 2 side by side, as most networks pool: rows of x are brought together as f32, a
// run of whole window rows at a time, and go through vectors.
bool in_pairs(const Geometry& g) {
  const auto pairs = [](const Windows& w) {
    return w.kernel == 2 && w.stride == 2 && w.padding == 0;
  };
  return pairs(g.down) && pairs(g.right) && g.out_width <= kPoolRun;
}

struct PairRun {
  static constexpr std::int64_t kBuffer = 2 * kPoolRun + kPoolSlack;
  alignas(64) std::array<float, kBuffer> top, bottom;
  alignas(64) std::array<float, kPoolRun + kPoolSlack> y;

  // body(run, plane, window row, how many) for runs of window rows of each plane, x read into the
  // run; after(plane) behind each.
  template <class Body, class After>
  static void for_each(const Geometry& g, DType t, const void* x, const RunArgs& args,
                       const Body& body, const After& after) {
    const std::int64_t most = std::max<std::int64_t>(1, kPoolRun / g.out_width);
    parallel_for(g.planes.at(args.symbols), g.x_plane(), [&](std::int64_t begin, std::int64_t end) {
      PairRun run;
      for (std::int64_t p = begin; p < end; ++p) {
        for (std::int64_t r = 0; r < g.out_height; r += most) {
          const std::int64_t count = std::min(most, g.out_height - r);
          run.read(g, t, at(x, p * g.x_plane(), t), r, count);
          body(run, p, r, count);
        }
        after(p);
      }
    });
  }
  // Rows of x below window rows [r, r + count).
  void read(const Geometry& g, DType t, const void* x, std::int64_t r, std::int64_t count) {
    const std::int64_t n = 2 * g.out_width;
    for (std::int64_t i = 0; i < count; ++i) {
      widen(t, at(x, 2 * (r + i) * g.width, t), top.data() + i * n, n);
      widen(t, at(x, (2 * (r + i) + 1) * g.width, t), bottom.data() + i * n, n);
    }
  }
  // Back to rows of dx; what no window holds becomes 0.
  void write(const Geometry& g, DType t, void* dx, std::int64_t r, std::int64_t count) {
    const std::int64_t n = 2 * g.out_width;
    const auto row = [&](std::int64_t i, const float* from) {
      narrow(from, t, at(dx, i * g.width, t), n);
      if (n < g.width) std::memset(at(dx, i * g.width + n, t), 0, (g.width - n) * size_of(t));
    };
    for (std::int64_t i = 0; i < count; ++i) {
      row(2 * (r + i), top.data() + i * n);
      row(2 * (r + i) + 1, bottom.data() + i * n);
    }
  }
};

void max_in_pairs(const Geometry& g, DType t, const RunArgs& args) {
  const auto maxima = [&](PairRun& run, std::int64_t p, std::int64_t r, std::int64_t count) {
    const std::int64_t n = count * g.out_width;
    max_of_pairs(run.top.data(), run.bottom.data(), run.y.data(), n);
    narrow(run.y.data(), t, at(args.out[0], p * g.y_plane() + r * g.out_width, t), n);
  };
  PairRun::for_each(g, t, args.in[0], args, maxima, [](std::int64_t) {});
}

void max_grad_in_pairs(const Geometry& g, DType t, const RunArgs& args) {
  const auto plane = [&](std::int64_t p) { return at(args.out[0], p * g.x_plane(), t); };
  const auto gradients = [&](PairRun& run, std::int64_t p, std::int64_t r, std::int64_t count) {
    const void* dy = args.in[0];
    const std::int64_t n = count * g.out_width;
    widen(t, at(dy, p * g.y_plane() + r * g.out_width, t), run.y.data(), n);
    max_of_pairs_grad(run.y.data(), run.top.data(), run.bottom.data(), n);
    run.write(g, t, plane(p), r, count);
  };
  const std::int64_t held = 2 * g.out_height * g.width;  // in rows that windows hold
  PairRun::for_each(g, t, args.in[1], args, gradients, [&](std::int64_t p) {
    std::memset(at(plane(p), held, t), 0, (g.x_plane() - held) * size_of(t));
  });
}

enum class Kind { Max, MaxGrad, MaxSelect, Average, AverageGrad };

template <class T>
void run_as(Kind kind, const Geometry& g, const RunArgs& args) {
  switch (kind) {
    case Kind::Max:
      return select<T>(g, args, args.in[0], args.in[0]);
    case Kind::MaxSelect:
      return select<T>(g, args, args.in[0], args.in[1]);
    case Kind::MaxGrad:
      return max_grad<T>(g, args);
    case Kind::Average:
      return average<T>(g, args);
    case Kind::AverageGrad:
      return average_grad<T>(g, args);
  }
}

class Pooling : public Prepared {
 public:
  Pooling(Kind kind, const Geometry& geometry, DType type)
      : kind_(kind), geometry_(geometry), type_(type) {}
  void run(const RunArgs& args) const override {
    if (type_ == DType::F64) return run_as<double>(kind_, geometry_, args);
    if (kind_ == Kind::Max && in_pairs(geometry_)) return max_in_pairs(geometry_, type_, args);
    if (kind_ == Kind::MaxGrad && in_pairs(geometry_))
      return max_grad_in_pairs(geometry_, type_, args);
    if (type_ == DType::F32)
      run_as<float>(kind_, geometry_, args);
    else if (type_ == DType::BF16)
      run_as<scalar::Bf16>(kind_, geometry_, args);
    else
      run_as<scalar::F16>(kind_, geometry_, args);
  }

 private:
  Kind kind_;
  Geometry geometry_;
  DType type_;
};

std::optional<Refusal> accepts(const CallSpec& call) {
  if (!is_float(call.in[0].dtype))
    return Refusal{std::string(name_of(call.in[0].dtype)) + " has no pooling here"};
  return std::nullopt;
}

// Where a kind finds x's and y's shapes.
template <class A, Kind kKind>
std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  const Shape &in = call.in[0].shape, &out = call.out[0].shape;
  const bool backward = kKind == Kind::MaxGrad || kKind == Kind::AverageGrad;
  return std::make_unique<Pooling>(
      kKind, geometry_of<A>(call, backward ? out : in, backward ? in : out), call.in[0].dtype);
}

}  // namespace

std::vector<Kernel> pool2d_kernels() {
  using M = MaxPool2dAttrs;
  return {{"cpu.max_pool2d", "max_pool2d", accepts, prepare<M, Kind::Max>},
          {"cpu.max_pool2d_grad", "max_pool2d_grad", accepts, prepare<M, Kind::MaxGrad>},
          {"cpu.max_pool2d_select", "max_pool2d_select", accepts, prepare<M, Kind::MaxSelect>},
          {"cpu.avg_pool2d", "avg_pool2d", accepts, prepare<AvgPool2dAttrs, Kind::Average>},
          {"cpu.avg_pool2d_grad", "avg_pool2d_grad", accepts,
           prepare<AvgPool2dGradAttrs, Kind::AverageGrad>}};
}

}  // namespace aloft::cpu
