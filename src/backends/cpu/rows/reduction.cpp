#include "backends/cpu/rows/reduction.h"

#include <algorithm>
#include <array>

#include "backends/cpu/parallel.h"
#include "backends/cpu/rows/axis_view.h"
#include "backends/cpu/rows/grouped_axes.h"
#include "backends/cpu/vectors/tiles.h"

namespace aloft::cpu {
namespace {

// Columns that one piece folds at a time.
constexpr std::int64_t kColumns = 512;
constexpr std::int64_t kMostPieces = 64;

// Few results of many elements each: the elements are cut too. By what a run has, not by its bound:
// a batch has the same bits in every program that takes it.
std::int64_t pieces_of(bool inner_is_reduced, std::int64_t reduced, std::int64_t kept) {
  const std::int64_t results = inner_is_reduced ? kept : (kept + kColumns - 1) / kColumns;
  const std::int64_t wanted = std::max<std::int64_t>(1, 16 / std::max<std::int64_t>(1, results));
  return std::clamp<std::int64_t>(reduced * std::min(kept, kColumns) / (4 * kChunkWork), 1,
                                  results >= 16 ? 1 : std::min(wanted * 4, kMostPieces));
}

constexpr bool is_light(DType t) { return has_tiles(t) || size_of(t) == 1; }

// The extents of one run, kept and reduced outer groups apart from the innermost one.
struct Walk {
  std::int64_t outer_kept = 1, outer_reduced = 1, inner = 1;
  bool inner_is_reduced;
  std::int64_t pieces;
  std::array<std::int64_t, kMaxAxes> extent{};

  Walk(const GroupedAxes& axes, std::span<const std::int64_t> symbols) {
    for (int g = 0; g < axes.count(); ++g) extent[g] = axes.extent(g, symbols);
    inner = extent[axes.count() - 1];
    for (int g = 0; g + 1 < axes.count(); ++g)
      (axes.is_marked(g) ? outer_reduced : outer_kept) *= extent[g];
    inner_is_reduced = axes.is_marked(axes.count() - 1);
    pieces = pieces_of(inner_is_reduced, reduced(), kept());
  }
  std::int64_t reduced() const { return outer_reduced * (inner_is_reduced ? inner : 1); }
  std::int64_t kept() const { return outer_kept * (inner_is_reduced ? 1 : inner); }
  // Where the innermost run of kept index `k` and reduced index `r` begins.
  std::int64_t offset(const GroupedAxes& axes, std::int64_t k, std::int64_t r) const {
    std::int64_t at = 0;
    for (int g = axes.count() - 2; g >= 0; --g) {
      std::int64_t& rest = axes.is_marked(g) ? r : k;
      at += rest % extent[g] * axes.stride(g);
      rest /= extent[g];
    }
    return at;
  }
};

class Reduction : public Prepared, public ColumnReduction {
 public:
  Reduction(const CallSpec& call, const Ints& axes, const ReductionCode& code)
      : axes_(call.in[0].shape, named_axes(axes, call.in[0].shape.rank()), call),
        code_(code),
        in_(call.in[0].dtype),
        out_(call.out[0].dtype),
        in_f32_(is_light(in_) && code.f32.row != nullptr) {
    inner_is_reduced_ = axes_.is_marked(axes_.count() - 1);
    for (int g = 0; g < axes_.count(); ++g)
      (axes_.is_marked(g) ? reduced_ : kept_) *= axes_.bound(g);
    kept_varies_ = !call.in[0].shape.is_constant() && !axes_.is_marked(0);
  }

  const LoopPart* loop_part() const override { return this; }
  std::optional<ColumnFold> column_fold() const override {
    const bool leading = !inner_is_reduced_ && axes_.count() <= 2;
    if (!leading || !in_f32_ || code_.before_f32 != nullptr || code_.start != 0)
      return std::nullopt;
    return ColumnFold{code_.f32.rows, kept_, pieces_of(false, reduced_, kept_)};
  }

  // The most that any number of rows up to the bound takes: fewer results may fall into more
  // pieces.
  std::size_t scratch_bytes() const override {
    std::int64_t most = 0;
    const auto count = [&](std::int64_t kept) {
      const std::int64_t pieces = pieces_of(inner_is_reduced_, reduced_, kept);
      if (pieces > 1) most = std::max(most, pieces * kept);
    };
    count(kept_);
    // Within one number of blocks the pieces only grow with the results.
    const std::int64_t block = inner_is_reduced_ ? 1 : kColumns;
    if (kept_varies_)
      for (std::int64_t kept = block; kept < std::min(kept_, 16 * block); kept += block)
        count(kept);
    return most * sizeof(double);
  }

  void run(const RunArgs& args) const override {
    if (in_f32_)
      run_as<float>(args, code_.f32, code_.before_f32);
    else
      run_as<double>(args, code_.f64, code_.before_f64);
  }

 private:
  template <class T>
  using Before = void (*)(const T*, T*, std::int64_t);

  template <class T>
  const T* open(const void* p, std::int64_t i, std::int64_t n, T* buffer, Before<T> before) const {
    const T* x;
    if constexpr (std::is_same_v<T, float>)
      x = open_f32(in_, at(p, i, in_), buffer, n);
    else
      x = open_f64(in_, at(p, i, in_), buffer, n);
    if (before == nullptr) return x;
    before(x, buffer, n);
    return buffer;
  }

  template <class T>
  void run_as(const RunArgs& args, const Fold<T>& fold, Before<T> before) const {
    const Walk walk(axes_, args.symbols);
    const auto count = static_cast<double>(walk.reduced());
    if (inner_is_reduced_)
      reduce_rows<T>(args, walk, fold, before, count);
    else
      reduce_columns<T>(args, walk, fold, before, count);
    if (walk.pieces > 1) combine_pieces(args, walk, count);
  }

  // The innermost group is reduced: every result folds whole runs.
  template <class T>
  void reduce_rows(const RunArgs& args, const Walk& walk, const Fold<T>& fold, Before<T> before,
                   double count) const {
    const std::int64_t length = walk.reduced(), results = walk.kept(), pieces = walk.pieces;
    const std::int64_t cost = length / pieces + 8;
    parallel_for(results * pieces, cost, [&](std::int64_t begin, std::int64_t end) {
      constexpr std::int64_t kBatch = 64;
      double done[kBatch];
      for (std::int64_t t = begin; t < end;) {
        const std::int64_t piece = t / results, k0 = t % results;
        const std::int64_t n = std::min({kBatch, end - t, results - k0});
        const std::int64_t q0 = length * piece / pieces, q1 = length * (piece + 1) / pieces;
        for (std::int64_t i = 0; i < n; ++i)
          done[i] = one_result<T>(args.in[0], walk, k0 + i, q0, q1, fold, before);
        keep(args, done, piece, k0, n, walk, count);
        t += n;
      }
    });
  }

  // Elements [q0, q1) of result k, in the order in which they lie.
  template <class T>
  double one_result(const void* in, const Walk& walk, std::int64_t k, std::int64_t q0,
                    std::int64_t q1, const Fold<T>& fold, Before<T> before) const {
    alignas(64) T buffer[kTile];
    double value = code_.start;
    while (q0 < q1) {
      const std::int64_t column = q0 % walk.inner;
      const std::int64_t n = std::min({walk.inner - column, q1 - q0, kTile});
      const std::int64_t from = walk.offset(axes_, k, q0 / walk.inner) + column;
      value = code_.combine(value, fold.row(open<T>(in, from, n, buffer, before), n));
      q0 += n;
    }
    return value;
  }

  // The innermost group is kept: neighbouring results fold run into run.
  template <class T>
  void reduce_columns(const RunArgs& args, const Walk& walk, const Fold<T>& fold, Before<T> before,
                      double count) const {
    const std::int64_t blocks = (walk.inner + kColumns - 1) / kColumns;
    const std::int64_t rows = walk.outer_reduced, pieces = walk.pieces;
    const std::int64_t tasks = walk.outer_kept * blocks * pieces;
    const std::int64_t cost = rows / pieces * std::min(kColumns, walk.inner) + 64;
    parallel_for(tasks, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t block = t % blocks, k = t / blocks % walk.outer_kept;
        const std::int64_t piece = t / blocks / walk.outer_kept;
        const std::int64_t c0 = block * kColumns, n = std::min(kColumns, walk.inner - c0);
        double total[kColumns];
        fold_columns<T>(args.in[0], walk, k, c0, n, rows * piece / pieces,
                        rows * (piece + 1) / pieces, fold, before, total);
        keep(args, total, piece, k * walk.inner + c0, n, walk, count);
      }
    });
  }

  template <class T>
  void fold_columns(const void* in, const Walk& walk, std::int64_t k, std::int64_t c0,
                    std::int64_t n, std::int64_t r0, std::int64_t r1, const Fold<T>& fold,
                    Before<T> before, double* total) const {
    alignas(64) T buffer[kColumns], sum[kColumns];
    std::fill_n(total, n, code_.start);
    while (r0 < r1) {
      const std::int64_t stop = std::min(r1, r0 + kRowsInF32);
      std::fill_n(sum, n, static_cast<T>(code_.start));
      for (; r0 < stop; ++r0)
        fold.rows(sum, open<T>(in, walk.offset(axes_, k, r0) + c0, n, buffer, before), n);
      for (std::int64_t i = 0; i < n; ++i)
        total[i] = code_.combine(total[i], static_cast<double>(sum[i]));
    }
  }

  // Results [k0, k0 + n): into scratch where pieces follow, else finished and into the output.
  void keep(const RunArgs& args, double* values, std::int64_t piece, std::int64_t k0,
            std::int64_t n, const Walk& walk, double count) const {
    if (walk.pieces > 1) {
      std::copy_n(values, n, static_cast<double*>(args.scratch) + piece * walk.kept() + k0);
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) values[i] = code_.finish(values[i], count);
    close_f64(out_, values, at(args.out[0], k0, out_), n);
  }

  void combine_pieces(const RunArgs& args, const Walk& walk, double count) const {
    const std::int64_t results = walk.kept();
    const auto* partial = static_cast<const double*>(args.scratch);
    for (std::int64_t k = 0; k < results; ++k) {
      double value = partial[k];
      for (std::int64_t p = 1; p < walk.pieces; ++p)
        value = code_.combine(value, partial[p * results + k]);
      value = code_.finish(value, count);
      close_f64(out_, &value, at(args.out[0], k, out_), 1);
    }
  }

  GroupedAxes axes_;
  ReductionCode code_;
  DType in_, out_;
  bool in_f32_;
  bool inner_is_reduced_ = false;
  std::int64_t reduced_ = 1, kept_ = 1;  // at the bound
  bool kept_varies_ = false;
};

}  // namespace

std::int64_t ColumnFold::pieces(std::int64_t rows) const { return pieces_of(false, rows, columns); }

std::unique_ptr<Prepared> prepare_reduction(const CallSpec& call, const Ints& axes,
                                            const ReductionCode& code) {
  return std::make_unique<Reduction>(call, axes, code);
}

}  // namespace aloft::cpu
