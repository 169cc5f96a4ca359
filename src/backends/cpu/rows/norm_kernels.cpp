#include "backends/cpu/rows/norm_kernels.h"

#include <algorithm>

#include "backends/cpu/parallel.h"
#include "backends/cpu/rows/norm_rows.h"
#include "backends/cpu/vectors/tiles.h"

namespace aloft::cpu {
namespace {

// Work of one element, in the units of parallel.h.
constexpr std::int64_t kWork = 2;
// Partial sums of the parameters' gradients.
constexpr std::int64_t kMostChunks = 32;

// How x falls into rows.
struct RowShape {
  Extent rows;
  std::int64_t most_rows = 0, length = 1;
  RowShape(const Shape& x, std::int64_t axes, const CallSpec& call) {
    Dim leading = 1;
    for (int d = 0; d < x.rank(); ++d) {
      if (d < x.rank() - axes)
        leading = leading * x[d];
      else
        length *= x[d].max();
    }
    rows = extent_of(leading, call);
    most_rows = leading.max();
  }
};

// A parameter as f32: where it lies, or widened into `buffer`.
const float* wide_parameter(const CallSpec& call, const RunArgs& args, std::size_t i, float* buffer,
                            std::int64_t n) {
  return i < call.in.size() ? open_f32(call.in[i].dtype, args.in[i], buffer, n) : nullptr;
}

class Norm : public Prepared {
 public:
  Norm(const CallSpec& call, std::int64_t axes, double eps, bool centred, bool of_sum)
      : call_(call),
        shape_(call.in[0].shape, axes, call),
        type_(call.in[0].dtype),
        eps_(eps),
        centred_(centred),
        of_sum_(of_sum),
        rows_(norm_rows(type_, centred)) {}

  std::size_t scratch_bytes() const override {
    return (call_.in.size() - 1 - of_sum_) * shape_.length * sizeof(float);
  }

  void run(const RunArgs& args) const override {
    const std::int64_t n = shape_.length;
    auto* buffer = static_cast<float*>(args.scratch);
    const std::size_t x = of_sum_ ? 1 : 0;
    NormForward all{};
    all.eps = eps_;
    all.scale = wide_parameter(call_, args, x + 1, buffer, n);
    all.shift = wide_parameter(call_, args, x + 2, buffer + n, n);
    auto* mean = centred_ ? static_cast<float*>(args.out[1]) : nullptr;
    auto* rstd = static_cast<float*>(args.out[centred_ ? 2 : 1]);
    const auto run_row = of_sum_ ? rows_.forward_of_sum : rows_.forward;
    parallel_for(shape_.rows.at(args.symbols), kWork * n + 16,
                 [&](std::int64_t begin, std::int64_t end) {
                   NormForward row = all;
                   for (std::int64_t r = begin; r < end; ++r) {
                     row.x = at(static_cast<const void*>(args.in[0]), r * n, type_);
                     row.y = at(args.out[0], r * n, type_);
                     if (of_sum_) {
                       row.addend = at(static_cast<const void*>(args.in[1]), r * n, type_);
                       row.sum = at(args.out.back(), r * n, type_);
                     }
                     const NormStatistics s = run_row(row, n);
                     if (mean) mean[r] = s.mean;
                     rstd[r] = s.rstd;
                   }
                 });
  }

 private:
  CallSpec call_;
  RowShape shape_;
  DType type_;
  double eps_;
  bool centred_, of_sum_;
  NormRows rows_;
};

class NormGrad : public Prepared {
 public:
  NormGrad(const CallSpec& call, std::int64_t axes, bool centred, bool to_sum)
      : call_(call),
        shape_(call.in[0].shape, axes, call),
        type_(call.in[0].dtype),
        centred_(centred),
        dy_(to_sum ? 1 : 0),
        sums_(static_cast<std::int64_t>(call.out.size()) - 1),
        rows_(norm_rows(type_, centred)) {}

  // The widened scale, then for each chunk its part of dscale and dshift.
  std::size_t scratch_bytes() const override {
    return (1 + sums_ * most_chunks()) * padded() * sizeof(float);
  }

  void run(const RunArgs& args) const override {
    const Chunks c = chunks(shape_.rows.at(args.symbols));
    auto* buffer = static_cast<float*>(args.scratch);
    const float* scale = wide_parameter(call_, args, rstd() + 1, buffer, shape_.length);
    float* partial = buffer + padded();
    for_each_chunk(c.count, [&](std::int64_t i) {
      float* mine = partial + i * sums_ * padded();
      std::fill_n(mine, sums_ * padded(), 0.0f);
      for (std::int64_t r = c.begin(i); r < c.end(i); ++r) one_row(args, r, scale, mine);
    });
    for (std::int64_t s = 0; s < sums_; ++s) add_up(args, s, partial + s * padded(), c.count);
  }

 private:
  int rstd() const { return dy_ + (centred_ ? 3 : 2); }  // an index, as dy_ is
  std::int64_t row_cost() const { return 2 * kWork * shape_.length + 16; }
  Chunks chunks(std::int64_t rows) const { return chunks_of(rows, row_cost(), kMostChunks); }
  // Of any number of rows up to the bound: fewer rows may fall into more chunks, because the bound
  // on their number makes chunks longer.
  std::int64_t most_chunks() const {
    return std::min(kMostChunks, chunks_of(shape_.most_rows, row_cost()).count);
  }
  // A row of partial sums begins on a cache line, so that threads do not share one.
  std::int64_t padded() const { return (shape_.length + 15) / 16 * 16; }

  void one_row(const RunArgs& args, std::int64_t r, const float* scale, float* mine) const {
    const std::int64_t n = shape_.length;
    NormBackward row{};
    const auto place = [&](int i) {
      return at(static_cast<const void*>(args.in[i]), r * n, type_);
    };
    if (dy_ > 0) row.residual = place(0);
    row.dy = place(dy_);
    row.x = place(dy_ + 1);
    row.dx = at(args.out[0], r * n, type_);
    if (centred_) row.statistics.mean = static_cast<const float*>(args.in[dy_ + 2])[r];
    row.statistics.rstd = static_cast<const float*>(args.in[rstd()])[r];
    row.scale = scale;
    row.dscale = sums_ > 0 ? mine : nullptr;
    row.dshift = sums_ > 1 ? mine + padded() : nullptr;
    rows_.backward(row, n);
  }

  // Output 1 + s: the chunks' parts, `stride` apart, in order.
  void add_up(const RunArgs& args, std::int64_t s, const float* first, std::int64_t chunks) const {
    const DType to = call_.out[1 + s].dtype;
    const std::int64_t stride = sums_ * padded();
    parallel_for(shape_.length, 2 * chunks, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; i += kTile) {
        alignas(64) double sum[kTile] = {};
        const std::int64_t n = std::min(kTile, end - i);
        for (std::int64_t c = 0; c < chunks; ++c)
          for (std::int64_t j = 0; j < n; ++j)
            sum[j] += static_cast<double>(first[c * stride + i + j]);
        close_f64(to, sum, at(args.out[1 + s], i, to), n);
      }
    });
  }

  CallSpec call_;
  RowShape shape_;
  DType type_;
  bool centred_;
  int dy_;
  std::int64_t sums_;
  NormRows rows_;
};

}  // namespace

std::optional<Refusal> accepts_norm(const CallSpec& call, int x, int first_statistic,
                                    int statistics) {
  if (!has_tiles(call.in[x].dtype)) return Refusal{"x in f64"};
  for (int i = first_statistic; i < first_statistic + statistics; ++i)
    if (call.in[i].dtype != DType::F32) return Refusal{"statistics that are not f32"};
  return std::nullopt;
}

std::unique_ptr<Prepared> prepare_norm(const CallSpec& call, std::int64_t axes, double eps,
                                       bool centred, bool of_sum) {
  return std::make_unique<Norm>(call, axes, eps, centred, of_sum);
}

std::unique_ptr<Prepared> prepare_norm_grad(const CallSpec& call, std::int64_t axes, bool centred,
                                            bool to_sum) {
  return std::make_unique<NormGrad>(call, axes, centred, to_sum);
}

std::vector<std::pair<int, int>> over_x(const CallSpec&) { return {{0, 0}}; }
std::vector<std::pair<int, int>> over_dy_or_x(const CallSpec&) { return {{0, 0}, {1, 0}}; }

}  // namespace aloft::cpu
