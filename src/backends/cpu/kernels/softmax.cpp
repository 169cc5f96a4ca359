// softmax and log_softmax: one sweep for the maximum, one for the sum of exponentials, one for the
// result; of long rows each tile's maximum and sum are found while it is in the first cache. In
// f32, exponentials of rows that stay in the first cache are computed once; logarithms and low
// types go by the log-sum-exp (cross_entropy_rows.h).
#include "ops/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "backends/cpu/parallel.h"
#include "backends/cpu/rows/cross_entropy_rows.h"
#include "backends/cpu/vectors/functions-inl.h"
#include "backends/cpu/vectors/map-inl.h"
#include "backends/cpu/vectors/term_functions-inl.h"
#include "backends/cpu/vectors/tiles.h"
#include "runtime/kernel.h"

// What the sweeps need from vectors; m and s hold one number a column, or one in all.
#ifndef ALOFT_SOFTMAX_SWEEPS
#define ALOFT_SOFTMAX_SWEEPS
namespace aloft::cpu {
struct SoftmaxSweeps {
  float (*max)(const float* x, std::int64_t n, float so_far);
  // y = exp(x - m); returns the sum.
  double (*exp_sum)(const float* x, float m, float* y, std::int64_t n);
  // y = exp(x - m) * scale.
  void (*exp_scale)(const float* x, float m, float scale, float* y, std::int64_t n);
  void (*scale)(const float* x, float scale, float* y, std::int64_t n);
  // Column by column.
  void (*max_columns)(const float* x, float* m, std::int64_t n);
  void (*exp_sub_columns)(const float* x, const float* m, float* y, std::int64_t n);
};
}  // namespace aloft::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

float max_of(const float* x, std::int64_t n, float so_far) {
  const Floats d;
  const auto w = static_cast<std::int64_t>(hn::Lanes(d));
  FloatV a = hn::Set(d, so_far), b = a;
  std::int64_t i = 0;
  for (; i + 2 * w <= n; i += 2 * w) {
    a = maximum_of(a, load(d, x + i));
    b = maximum_of(b, load(d, x + i + w));
  }
  for (; i + w <= n; i += w) a = maximum_of(a, load(d, x + i));
  if (i < n) b = maximum_of(b, load_n(d, x + i, n - i, so_far));
  a = maximum_of(a, b);
  if (!hn::AllFalse(d, hn::IsNaN(a))) return std::numeric_limits<float>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, a));
}

double exp_sum(const float* x, float m, float* y, std::int64_t n) {
  const Floats d;
  const auto w = static_cast<std::int64_t>(hn::Lanes(d));
  const FloatV shift = hn::Set(d, m);
  FloatV s = hn::Zero(d), t = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * w <= n; i += 2 * w) {
    const FloatV a = exp_of(hn::Sub(load(d, x + i), shift));
    const FloatV b = exp_of(hn::Sub(load(d, x + i + w), shift));
    store(d, a, y + i);
    store(d, b, y + i + w);
    s = hn::Add(s, a);
    t = hn::Add(t, b);
  }
  double rest = 0;
  for (; i < n; i += w) {
    const std::int64_t m_left = std::min(w, n - i);
    const FloatV a = exp_of(hn::Sub(load_n(d, x + i, m_left), shift));
    store_n(d, a, y + i, m_left);
    for (std::int64_t j = 0; j < m_left; ++j) rest += static_cast<double>(y[i + j]);
  }
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(s, t)))) + rest;
}

void exp_scale(const float* x, float m, float scale, float* y, std::int64_t n) {
  const FloatV shift = constant(m), by = constant(scale);
  map(x, y, n, [&](FloatV v) HWY_ATTR { return hn::Mul(exp_of(hn::Sub(v, shift)), by); });
}
void scale_by(const float* x, float scale, float* y, std::int64_t n) {
  const FloatV by = constant(scale);
  map(x, y, n, [&](FloatV v) HWY_ATTR { return hn::Mul(v, by); });
}
void max_columns(const float* x, float* m, std::int64_t n) {
  map(m, x, m, n, [](FloatV a, FloatV b) HWY_ATTR { return maximum_of(a, b); });
}
void exp_sub_columns(const float* x, const float* m, float* y, std::int64_t n) {
  map(x, m, y, n, [](FloatV a, FloatV b) HWY_ATTR { return exp_of(hn::Sub(a, b)); });
}

SoftmaxSweeps softmax_sweeps() {
  return {max_of, exp_sum, exp_scale, scale_by, max_columns, exp_sub_columns};
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {
namespace {

HWY_EXPORT(softmax_sweeps);

// Elements of a row whose exponentials are kept between the sweeps.
constexpr std::int64_t kRow = 4 * kTile;
// Bytes of logarithms beyond which they go past the caches.
constexpr std::int64_t kStreamed = std::int64_t{32} << 20;
// Columns of an inner axis that are normalised together.
constexpr std::int64_t kColumns = 256;

class Softmax : public Prepared {
 public:
  Softmax(const CallSpec& call, bool log)
      : log_(log), dtype_(call.in[0].dtype), sweeps_(HWY_DYNAMIC_DISPATCH(softmax_sweeps)()) {
    if (dtype_ != DType::F64) rows_ = cross_entropy_rows(dtype_, dtype_);
    const Shape& shape = call.in[0].shape;
    const auto a = from_attrs<SoftmaxAttrs>(call.attrs);
    const int axis = normal_axis(a.axis, shape.rank());
    Dim outer = 1;
    for (int d = 0; d < axis; ++d) outer = outer * shape[d];
    outer_ = extent_of(outer, call);
    length_ = extent_of(shape[axis], call);
    for (int d = axis + 1; d < shape.rank(); ++d) inner_ *= shape[d].max();
  }

  void run(const RunArgs& args) const override {
    const std::int64_t outer = outer_.at(args.symbols), length = length_.at(args.symbols);
    if (outer * length * inner_ == 0) return;
    if (dtype_ == DType::F64) return in_double(args, outer, length);
    if (inner_ > 1) return columns(args, outer, length);
    const std::int64_t row_bytes = length * static_cast<std::int64_t>(size_of(dtype_));
    const bool streams = args.in[0] != args.out[0] && outer * row_bytes > kStreamed &&
                         row_bytes % 64 == 0 &&
                         reinterpret_cast<std::uintptr_t>(args.out[0]) % 64 == 0;
    parallel_for(outer, 6 * length, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const void* x = at(static_cast<const void*>(args.in[0]), r * length, dtype_);
        void* y = at(args.out[0], r * length, dtype_);
        row(x, y, length, streams);
      }
    });
  }

 private:
  void row(const void* x, void* y, std::int64_t n, bool streams) const {
    if (log_) return rows_.log_softmax(x, n, rows_.log_sum_exp(x, n), streams, y);
    if (dtype_ != DType::F32) return low_row(x, y, n);
    if (n <= kRow)
      short_row(static_cast<const float*>(x), static_cast<float*>(y), n);
    else
      long_row(static_cast<const float*>(x), static_cast<float*>(y), n);
  }

  void low_row(const void* x, void* y, std::int64_t n) const {
    alignas(64) float e[kRow + 16];
    if (n <= kRow)
      rows_.softmax(x, n, e, y);
    else
      rows_.gradient(x, n, rows_.log_sum_exp(x, n), 0, 1, y);
  }

  void short_row(const float* x, float* y, std::int64_t n) const {
    const double s = sweeps_.exp_sum(x, sweeps_.max(x, n, kLeast), y, n);
    sweeps_.scale(y, static_cast<float>(1 / s), y, n);
  }

  void long_row(const float* x, float* y, std::int64_t n) const {
    alignas(64) float buffer[kTile];
    float m = kLeast;
    double s = 0;
    for (std::int64_t i = 0; i < n; i += kTile) {
      const std::int64_t k = std::min(kTile, n - i);
      const float before = m;
      m = sweeps_.max(x + i, k, m);
      if (m == kLeast) continue;  // so far nothing but -inf
      if (m != before) s *= std::exp(static_cast<double>(before) - static_cast<double>(m));
      s += sweeps_.exp_sum(x + i, m, buffer, k);
    }
    sweeps_.exp_scale(x, m, static_cast<float>(1 / s), y, n);
  }

  // An inner axis: neighbouring columns are normalised together.
  void columns(const RunArgs& args, std::int64_t outer, std::int64_t length) const {
    const std::int64_t blocks = (inner_ + kColumns - 1) / kColumns;
    parallel_for(outer * blocks, 6 * length * std::min(inner_, kColumns),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t t = begin; t < end; ++t) {
                     const std::int64_t c = t % blocks * kColumns;
                     column_block(args, (t / blocks) * length * inner_ + c, length,
                                  std::min(kColumns, inner_ - c));
                   }
                 });
  }

  void column_block(const RunArgs& args, std::int64_t from, std::int64_t length,
                    std::int64_t n) const {
    alignas(64) float wide[kColumns], m[kColumns], e[kColumns];
    double s[kColumns] = {};
    std::fill_n(m, n, kLeast);
    const auto row = [&](std::int64_t a) {
      const void* p = args.in[0];
      return open_f32(dtype_, at(p, from + a * inner_, dtype_), wide, n);
    };
    for (std::int64_t a = 0; a < length; ++a) sweeps_.max_columns(row(a), m, n);
    for (std::int64_t a = 0; a < length; ++a) {
      sweeps_.exp_sub_columns(row(a), m, e, n);
      for (std::int64_t i = 0; i < n; ++i) s[i] += static_cast<double>(e[i]);
    }
    for (std::int64_t i = 0; i < n; ++i) s[i] = log_ ? std::log(s[i]) : 1 / s[i];
    for (std::int64_t a = 0; a < length; ++a) {
      const float* x = row(a);
      if (!log_) sweeps_.exp_sub_columns(x, m, e, n);
      for (std::int64_t i = 0; i < n; ++i)
        e[i] = log_ ? static_cast<float>(static_cast<double>(x[i]) - m[i] - s[i])
                    : static_cast<float>(e[i] * s[i]);
      close_f32(dtype_, e, at(args.out[0], from + a * inner_, dtype_), n);
    }
  }

  void in_double(const RunArgs& args, std::int64_t outer, std::int64_t length) const {
    const auto* x = static_cast<const double*>(args.in[0]);
    auto* y = static_cast<double*>(args.out[0]);
    parallel_for(outer * inner_, 20 * length, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t from = t / inner_ * length * inner_ + t % inner_;
        double m = -std::numeric_limits<double>::infinity(), s = 0;
        for (std::int64_t a = 0; a < length; ++a) {
          const double v = x[from + a * inner_];
          m = std::isnan(m) || m >= v ? m : v;
        }
        for (std::int64_t a = 0; a < length; ++a) s += std::exp(x[from + a * inner_] - m);
        for (std::int64_t a = 0; a < length; ++a) {
          const std::int64_t i = from + a * inner_;
          y[i] = log_ ? x[i] - m - std::log(s) : std::exp(x[i] - m) / s;
        }
      }
    });
  }

  static constexpr float kLeast = -std::numeric_limits<float>::infinity();
  bool log_;
  DType dtype_;
  SoftmaxSweeps sweeps_;
  CrossEntropyRows rows_;
  Extent outer_, length_;
  std::int64_t inner_ = 1;
};

template <bool kLog>
std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  return std::make_unique<Softmax>(call, kLog);
}

// Every sweep of a row or column block reads all of it before a later one writes.
std::vector<std::pair<int, int>> in_place(const CallSpec&) { return {{0, 0}}; }

}  // namespace

std::vector<Kernel> softmax_kernels() {
  return {{"cpu.softmax", "softmax", always, prepare<false>, in_place},
          {"cpu.log_softmax", "log_softmax", always, prepare<true>, in_place}};
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
