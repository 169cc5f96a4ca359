// softmax_grad and log_softmax_grad: a row's sum, then its result while the row is in the caches;
// for an inner axis the same with blocks of neighbouring columns.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/softmax_grad.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "backends/cpu/parallel.h"
#include "backends/cpu/rows/axis_view.h"
#include "backends/cpu/vectors/functions-inl.h"
#include "backends/cpu/vectors/sweeps-inl.h"
#include "backends/cpu/vectors/tiles.h"
#include "ops/softmax.h"
#include "runtime/kernel.h"

#ifndef ALOFT_SOFTMAX_GRAD_SWEEPS
#define ALOFT_SOFTMAX_GRAD_SWEEPS
namespace aloft::cpu {
struct SoftmaxGradSweeps {
  // What dx takes off: <dy, y>, or sum(dy).
  double (*sum)(const void* dy, const void* y, std::int64_t n);
  void (*result)(const void* dy, const void* y, float sum, void* dx, std::int64_t n);
  // Column by column.
  void (*add)(const void* dy, const void* y, float* sums, std::int64_t n);
  void (*results)(const void* dy, const void* y, const float* sums, void* dx, std::int64_t n);
};
}  // namespace aloft::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

template <bool kLog>
HWY_INLINE FloatV term(FloatV dy, FloatV y) {
  return kLog ? dy : hn::Mul(dy, y);
}
template <bool kLog>
HWY_INLINE FloatV gradient(FloatV dy, FloatV y, FloatV s) {
  return kLog ? hn::NegMulAdd(exp_of(y), s, dy) : hn::Mul(y, hn::Sub(dy, s));
}

template <class T, bool kLog>
struct Sweeps {
  static const T* of(const void* p) { return static_cast<const T*>(p); }

  static double sum(const void* dy, const void* y, std::int64_t n) {
    return sum_over(n, [&](auto at) HWY_ATTR { return term<kLog>(at(of(dy)), at(of(y))); });
  }
  static void result(const void* dy, const void* y, float sum, void* dx, std::int64_t n) {
    const FloatV s = constant(sum);
    for_vectors(n, [&](auto at) HWY_ATTR {
      at.put(gradient<kLog>(at(of(dy)), at(of(y)), s), static_cast<T*>(dx));
    });
  }
  static void add(const void* dy, const void* y, float* sums, std::int64_t n) {
    for_vectors(n, [&](auto at) HWY_ATTR {
      at.put(hn::Add(at(sums), term<kLog>(at(of(dy)), at(of(y)))), sums);
    });
  }
  static void results(const void* dy, const void* y, const float* sums, void* dx, std::int64_t n) {
    for_vectors(n, [&](auto at) HWY_ATTR {
      at.put(gradient<kLog>(at(of(dy)), at(of(y)), at(sums)), static_cast<T*>(dx));
    });
  }
  static SoftmaxGradSweeps all() { return {sum, result, add, results}; }
};

template <bool kLog>
SoftmaxGradSweeps sweeps_for(DType t) {
  if (t == DType::F32) return Sweeps<float, kLog>::all();
  if (t == DType::BF16) return Sweeps<scalar::Bf16, kLog>::all();
  return Sweeps<scalar::F16, kLog>::all();
}

SoftmaxGradSweeps softmax_grad_sweeps(DType t, bool log) {
  return log ? sweeps_for<true>(t) : sweeps_for<false>(t);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {
namespace {

HWY_EXPORT(softmax_grad_sweeps);

// Columns of an inner axis whose sums are kept together, and rows added in f32 before they move on
// to double.
constexpr std::int64_t kColumns = 512, kRows = 128;

class SoftmaxGrad : public Prepared {
 public:
  SoftmaxGrad(const CallSpec& call, bool log)
      : log_(log),
        dtype_(call.in[0].dtype),
        view_(call.in[0].shape, from_attrs<SoftmaxAttrs>(call.attrs).axis, call) {
    if (dtype_ != DType::F64) sweeps_ = HWY_DYNAMIC_DISPATCH(softmax_grad_sweeps)(dtype_, log);
  }

  void run(const RunArgs& args) const override {
    const std::int64_t outer = view_.outer.at(args.symbols), n = view_.length.at(args.symbols);
    const std::int64_t inner = view_.inner;
    if (outer * n * inner == 0) return;
    if (dtype_ == DType::F64) return in_double(args, outer, n);
    if (inner > 1) return columns(args, outer, n);
    parallel_for(outer, 3 * n, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const void *dy = from(args.in[0], r * n), *y = from(args.in[1], r * n);
        const double s = sweeps_.sum(dy, y, n);
        sweeps_.result(dy, y, static_cast<float>(s), at(args.out[0], r * n, dtype_), n);
      }
    });
  }

 private:
  const void* from(const void* p, std::int64_t i) const { return at(p, i, dtype_); }

  void columns(const RunArgs& args, std::int64_t outer, std::int64_t length) const {
    const std::int64_t inner = view_.inner, blocks = (inner + kColumns - 1) / kColumns;
    const std::int64_t cost = 3 * length * std::min(inner, kColumns);
    parallel_for(outer * blocks, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t c = t % blocks * kColumns;
        column_block(args, t / blocks * length * inner + c, length, std::min(kColumns, inner - c));
      }
    });
  }

  void column_block(const RunArgs& args, std::int64_t first, std::int64_t length,
                    std::int64_t n) const {
    alignas(64) float sums[kColumns];
    double total[kColumns] = {};
    for (std::int64_t a = 0; a < length;) {
      const std::int64_t stop = std::min(length, a + kRows);
      std::fill_n(sums, n, 0.0f);
      for (; a < stop; ++a) {
        const std::int64_t i = first + a * view_.inner;
        sweeps_.add(from(args.in[0], i), from(args.in[1], i), sums, n);
      }
      for (std::int64_t j = 0; j < n; ++j) total[j] += static_cast<double>(sums[j]);
    }
    for (std::int64_t j = 0; j < n; ++j) sums[j] = static_cast<float>(total[j]);
    for (std::int64_t a = 0; a < length; ++a) {
      const std::int64_t i = first + a * view_.inner;
      sweeps_.results(from(args.in[0], i), from(args.in[1], i), sums, at(args.out[0], i, dtype_),
                      n);
    }
  }

  void in_double(const RunArgs& args, std::int64_t outer, std::int64_t length) const {
    const auto *dy = static_cast<const double*>(args.in[0]),
               *y = static_cast<const double*>(args.in[1]);
    auto* dx = static_cast<double*>(args.out[0]);
    const std::int64_t inner = view_.inner;
    parallel_for(outer * inner, 20 * length, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t first = t / inner * length * inner + t % inner;
        const std::int64_t last = first + length * inner;
        double s = 0;
        for (std::int64_t i = first; i < last; i += inner) s += log_ ? dy[i] : dy[i] * y[i];
        for (std::int64_t i = first; i < last; i += inner)
          dx[i] = log_ ? dy[i] - std::exp(y[i]) * s : y[i] * (dy[i] - s);
      }
    });
  }

  bool log_;
  DType dtype_;
  AxisView view_;
  SoftmaxGradSweeps sweeps_{};
};

template <bool kLog>
std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  return std::make_unique<SoftmaxGrad>(call, kLog);
}

// A row, or a block of columns, is read whole before its result is written.
std::vector<std::pair<int, int>> in_place(const CallSpec&) { return {{0, 0}, {1, 0}}; }

}  // namespace

std::vector<Kernel> softmax_grad_kernels() {
  return {{"cpu.softmax_grad", "softmax_grad", always, prepare<false>, in_place},
          {"cpu.log_softmax_grad", "log_softmax_grad", always, prepare<true>, in_place}};
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
