#include "backends/cpu/matmul/wide_matmul.h"

#include <algorithm>

#include "backends/cpu/parallel.h"

namespace aloft::cpu {
namespace {

// A block of C and a panel of B fit into the first two caches.
constexpr std::int64_t kRows = 32, kColumns = 64, kDepth = 64;

// Element (row, column) of a matrix is data[row * row_step + column * column_step].
struct WideView {
  const double* data;
  std::int64_t row_step, column_step;
};

class WideProduct : public Prepared {
 public:
  explicit WideProduct(const MatmulCall& call) : call_(call) {}
  std::string how() const override { return "plain loops in double"; }

  void run(const RunArgs& args) const override {
    const MatmulSpec& s = call_.spec;
    const MatmulActual actual = call_.actual(args);
    const std::int64_t down = (actual.m + kRows - 1) / kRows;
    const std::int64_t across = (s.n + kColumns - 1) / kColumns;
    const std::int64_t cost = std::min(kRows, actual.m) * std::min(kColumns, s.n) * actual.k;
    parallel_for(actual.batch * down * across, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t)
        block(args, actual, t / across / down, t / across % down * kRows, t % across * kColumns);
    });
  }

 private:
  WideView a_of(const RunArgs& args, std::int64_t b) const {
    const MatmulSpec& s = call_.spec;
    const auto* data = static_cast<const double*>(args.in[0]) +
                       (s.a_offset.empty() ? b * s.m * s.k : s.a_offset[b]);
    return s.transpose_a ? WideView{data, 1, s.m} : WideView{data, s.k, 1};
  }
  WideView b_of(const RunArgs& args, std::int64_t b) const {
    const MatmulSpec& s = call_.spec;
    const auto* data = static_cast<const double*>(args.in[1]) +
                       (s.b_offset.empty() ? b * s.n * s.k : s.b_offset[b]);
    return s.transpose_b ? WideView{data, 1, s.k} : WideView{data, s.n, 1};
  }

  void block(const RunArgs& args, const MatmulActual& actual, std::int64_t batch, std::int64_t row,
             std::int64_t column) const {
    const MatmulSpec& s = call_.spec;
    const std::int64_t m = std::min(kRows, actual.m - row), n = std::min(kColumns, s.n - column);
    const WideView a = a_of(args, batch), b = b_of(args, batch);
    alignas(64) double sums[kRows][kColumns], panel[kDepth][kColumns] = {};
    const auto* bias = call_.bias < 0 ? nullptr : static_cast<const double*>(args.in[call_.bias]);
    for (std::int64_t i = 0; i < m; ++i) std::fill_n(sums[i], kColumns, 0.0);
    for (std::int64_t k0 = 0; k0 < actual.k; k0 += kDepth) {
      const std::int64_t depth = std::min(kDepth, actual.k - k0);
      for (std::int64_t k = 0; k < depth; ++k)
        for (std::int64_t j = 0; j < n; ++j)
          panel[k][j] = b.data[(k0 + k) * b.row_step + (column + j) * b.column_step];
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t k = 0; k < depth; ++k) {
          const double x = a.data[(row + i) * a.row_step + (k0 + k) * a.column_step];
          for (std::int64_t j = 0; j < kColumns; ++j) sums[i][j] += x * panel[k][j];
        }
    }
    auto* c = static_cast<double*>(args.out[0]) + (batch * s.m + row) * s.n + column;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        c[i * s.n + j] = sums[i][j] + (bias ? bias[column + j] : 0);
  }

  MatmulCall call_;
};

}  // namespace

std::unique_ptr<Prepared> prepare_wide(const MatmulCall& call) {
  return std::make_unique<WideProduct>(call);
}

}  // namespace aloft::cpu
