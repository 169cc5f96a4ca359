#include "backends/cpu/rows/integer_reduction.h"

#include <algorithm>

#include "backends/cpu/parallel.h"
#include "backends/cpu/rows/axis_view.h"
#include "backends/cpu/rows/grouped_axes.h"
#include "backends/cpu/vectors/integer_tiles.h"
#include "backends/cpu/vectors/tiles.h"

namespace aloft::cpu {
namespace {

constexpr std::int64_t kColumns = 512;  // results that are folded together

class IntegerReduction : public Prepared {
 public:
  IntegerReduction(const CallSpec& call, const Ints& axes, IntegerFold fold, std::int64_t start)
      : axes_(call.in[0].shape, named_axes(axes, call.in[0].shape.rank()), call),
        fold_(fold),
        start_(start),
        in_(call.in[0].dtype),
        out_(call.out[0].dtype) {}

  void run(const RunArgs& args) const override {
    std::int64_t extent[kMaxAxes], kept = 1, reduced = 1;
    const int last = axes_.count() - 1;
    for (int g = 0; g <= last; ++g) {
      extent[g] = axes_.extent(g, args.symbols);
      if (g < last) (axes_.is_marked(g) ? reduced : kept) *= extent[g];
    }
    const std::int64_t inner = extent[last];
    const bool in_rows = axes_.is_marked(last);
    const std::int64_t width = in_rows ? 1 : std::min(kColumns, inner);
    const std::int64_t blocks = in_rows ? 1 : (inner + kColumns - 1) / kColumns;
    parallel_for(kept * blocks, reduced * (in_rows ? inner : width) + 8,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t t = begin; t < end; ++t) {
                     const std::int64_t k = t / blocks, c0 = t % blocks * kColumns;
                     const std::int64_t columns = in_rows ? 1 : std::min(kColumns, inner - c0);
                     alignas(64) std::int64_t total[kColumns];
                     std::fill_n(total, columns, start_);
                     for (std::int64_t r = 0; r < reduced; ++r) {
                       const std::int64_t from = offset(extent, k, r);
                       if (in_rows)
                         fold_row(args.in[0], from, inner, total);
                       else
                         fold_columns(args.in[0], from + c0, columns, total);
                     }
                     const std::int64_t place = in_rows ? k : k * inner + c0;
                     close_i64(out_, total, at(args.out[0], place, out_), columns);
                   }
                 });
  }

 private:
  // Where the innermost run of kept index `k` and reduced index `r` begins.
  std::int64_t offset(const std::int64_t* extent, std::int64_t k, std::int64_t r) const {
    std::int64_t at = 0;
    for (int g = axes_.count() - 2; g >= 0; --g) {
      std::int64_t& rest = axes_.is_marked(g) ? r : k;
      at += rest % extent[g] * axes_.stride(g);
      rest /= extent[g];
    }
    return at;
  }

  void fold_columns(const void* in, std::int64_t from, std::int64_t n, std::int64_t* total) const {
    alignas(64) std::int64_t wide[kColumns];
    fold_(total, open_i64(in_, at(in, from, in_), wide, n), n);
  }

  // Column by column of a row that is laid out as kColumns columns, then the columns.
  void fold_row(const void* in, std::int64_t from, std::int64_t n, std::int64_t* total) const {
    alignas(64) std::int64_t partial[kColumns];
    const std::int64_t width = std::min(kColumns, n);
    std::fill_n(partial, width, start_);
    for (std::int64_t i = 0; i < n; i += kColumns)
      fold_columns(in, from + i, std::min(kColumns, n - i), partial);
    for (std::int64_t i = 0; i < width; ++i) fold_(total, partial + i, 1);
  }

  GroupedAxes axes_;
  IntegerFold fold_;
  std::int64_t start_;
  DType in_, out_;
};

}  // namespace

std::unique_ptr<Prepared> prepare_integer_reduction(const CallSpec& call, const Ints& axes,
                                                    IntegerFold fold, std::int64_t start) {
  return std::make_unique<IntegerReduction>(call, axes, fold, start);
}

}  // namespace aloft::cpu
