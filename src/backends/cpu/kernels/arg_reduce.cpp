// argmax and argmin.
#include "ops/arg_reduce.h"

#include <cmath>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/axis_view.h"
#include "backends/cpu/vectors/integer_tiles.h"
#include "backends/cpu/vectors/tiles.h"

namespace aloft::cpu {
namespace {

// Columns of an inner axis that are searched together.
constexpr std::int64_t kColumns = 128;

template <bool kLargest>
class ArgReduce : public Prepared {
 public:
  explicit ArgReduce(const CallSpec& call)
      : view_(call.in[0].shape, from_attrs<ArgReduceAttrs>(call.attrs).axis, call),
        dtype_(call.in[0].dtype) {}

  void run(const RunArgs& args) const override {
    const std::int64_t outer = view_.outer.at(args.symbols), n = view_.length.at(args.symbols);
    if (is_integer(dtype_))
      search<std::int64_t>(args, outer, n);
    else
      search<double>(args, outer, n);
  }

 private:
  // In double, of integers in 64 bits.
  template <class T>
  void search(const RunArgs& args, std::int64_t outer, std::int64_t n) const {
    auto* out = static_cast<std::int32_t*>(args.out[0]);
    const std::int64_t inner = view_.inner;
    if (inner == 1) {
      parallel_for(outer, 2 * n, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row)
          out[row] = in_row<T>(args.in[0], row * n, n);
      });
      return;
    }
    const std::int64_t blocks = (inner + kColumns - 1) / kColumns;
    parallel_for(outer * blocks, 2 * n * std::min(inner, kColumns),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t t = begin; t < end; ++t) {
                     const std::int64_t c = t % blocks * kColumns, o = t / blocks;
                     in_columns<T>(args.in[0], o * n * inner + c, n, std::min(kColumns, inner - c),
                                   out + o * inner + c);
                   }
                 });
  }

  // Whether v takes the place of the best so far: NaN does from a number, equals do not.
  static bool beats(double v, double best) {
    if (std::isnan(best)) return false;
    return std::isnan(v) || (kLargest ? v > best : v < best);
  }
  static bool beats(std::int64_t v, std::int64_t best) { return kLargest ? v > best : v < best; }

  template <class T>
  const T* open(const void* p, T* buffer, std::int64_t n) const {
    if constexpr (std::is_same_v<T, double>)
      return open_f64(dtype_, p, buffer, n);
    else
      return open_i64(dtype_, p, buffer, n);
  }

  template <class T>
  std::int32_t in_row(const void* in, std::int64_t from, std::int64_t n) const {
    alignas(64) T wide[kTile];
    T best = 0;
    std::int64_t at_best = 0;
    for (std::int64_t i = 0; i < n; i += kTile) {
      const std::int64_t m = std::min(kTile, n - i);
      const T* x = open<T>(at(in, from + i, dtype_), wide, m);
      if (i == 0) best = x[0];
      for (std::int64_t k = 0; k < m; ++k)
        if (beats(x[k], best)) {
          best = x[k];
          at_best = i + k;
        }
    }
    return static_cast<std::int32_t>(at_best);
  }

  template <class T>
  void in_columns(const void* in, std::int64_t from, std::int64_t n, std::int64_t columns,
                  std::int32_t* out) const {
    alignas(64) T wide[kColumns], best[kColumns];
    for (std::int64_t k = 0; k < n; ++k) {
      const T* x = open<T>(at(in, from + k * view_.inner, dtype_), wide, columns);
      for (std::int64_t c = 0; c < columns; ++c)
        if (k == 0 || beats(x[c], best[c])) {
          best[c] = x[c];
          out[c] = static_cast<std::int32_t>(k);
        }
    }
  }

  AxisView view_;
  DType dtype_;
};

}  // namespace

std::vector<Kernel> arg_reduce_kernels() {
  return {{"cpu.argmax", "argmax", always, prepare_as<ArgReduce<true>>},
          {"cpu.argmin", "argmin", always, prepare_as<ArgReduce<false>>}};
}

}  // namespace aloft::cpu
