// cumsum: sums run in double, of integers in 64 bits; a chain for each column.
#include "ops/cumsum.h"

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/axis_view.h"
#include "backends/cpu/vectors/integer_tiles.h"
#include "backends/cpu/vectors/tiles.h"
#include "scalar/integers.h"

namespace aloft::cpu {
namespace {

constexpr std::int64_t kColumns = 256;

class Cumsum : public Prepared {
 public:
  explicit Cumsum(const CallSpec& call)
      : attrs_(from_attrs<CumsumAttrs>(call.attrs)),
        view_(call.in[0].shape, attrs_.axis, call),
        dtype_(call.in[0].dtype) {}

  void run(const RunArgs& args) const override {
    const std::int64_t outer = view_.outer.at(args.symbols), n = view_.length.at(args.symbols);
    const std::int64_t inner = view_.inner, blocks = (inner + kColumns - 1) / kColumns;
    parallel_for(outer * blocks, 2 * n * std::min(inner, kColumns),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t t = begin; t < end; ++t) {
                     const std::int64_t c = t % blocks * kColumns;
                     const std::int64_t from = t / blocks * n * inner + c;
                     const std::int64_t columns = std::min(kColumns, inner - c);
                     if (is_integer(dtype_))
                       chain_of_integers(args, from, n, columns);
                     else
                       chain(args, from, n, columns);
                   }
                 });
  }

 private:
  void chain(const RunArgs& args, std::int64_t from, std::int64_t n, std::int64_t columns) const {
    alignas(64) double wide[kColumns], sum[kColumns] = {};
    for (std::int64_t t = 0; t < n; ++t) {
      const std::int64_t i = from + (attrs_.reverse ? n - 1 - t : t) * view_.inner;
      const void* p = args.in[0];
      const double* x = open_f64(dtype_, at(p, i, dtype_), wide, columns);
      for (std::int64_t c = 0; c < columns; ++c) sum[c] += x[c];
      close_f64(dtype_, sum, at(args.out[0], i, dtype_), columns);
    }
  }

  void chain_of_integers(const RunArgs& args, std::int64_t from, std::int64_t n,
                         std::int64_t columns) const {
    alignas(64) std::int64_t wide[kColumns], sum[kColumns] = {};
    for (std::int64_t t = 0; t < n; ++t) {
      const std::int64_t i = from + (attrs_.reverse ? n - 1 - t : t) * view_.inner;
      const void* p = args.in[0];
      const std::int64_t* x = open_i64(dtype_, at(p, i, dtype_), wide, columns);
      for (std::int64_t c = 0; c < columns; ++c) sum[c] = scalar::wrapping_add(sum[c], x[c]);
      close_i64(dtype_, sum, at(args.out[0], i, dtype_), columns);
    }
  }

  CumsumAttrs attrs_;
  AxisView view_;
  DType dtype_;
};

std::vector<std::pair<int, int>> in_place(const CallSpec&) { return {{0, 0}}; }

}  // namespace

std::vector<Kernel> cumsum_kernels() {
  return {{"cpu.cumsum", "cumsum", always, prepare_as<Cumsum>, in_place}};
}

}  // namespace aloft::cpu
