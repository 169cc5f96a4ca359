// fused: chunks of the steps' common shape, a tile at a time; where results are summed over leading
// axes, blocks of columns and pieces of rows, as kernels/reduce.cpp cuts them.
#include "ops/fused.h"

#include <algorithm>

#include "backends/cpu/elements/tile_program.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"

namespace aloft::cpu {
namespace {

std::variant<TileProgram, Refusal> program_of(const CallSpec& call) {
  try {
    const auto a = from_attrs<FusedAttrs>(call.attrs);
    return TileProgram::make(call, parse_step_program(a.program, static_cast<int>(call.in.size())));
  } catch (const UserError& e) {
    return Refusal{e.headline()};
  }
}

std::optional<Refusal> accepts(const CallSpec& call) {
  const auto program = program_of(call);
  if (const Refusal* why = std::get_if<Refusal>(&program)) return *why;
  return std::nullopt;
}

class Fused : public Prepared {
 public:
  explicit Fused(const CallSpec& call) : program_(std::get<TileProgram>(program_of(call))) {
    for (const TensorType& t : call.out) out_.push_back(t.dtype);
  }

  std::size_t scratch_bytes() const override {
    if (program_.sums().empty() || program_.fold().most_pieces == 1) return 0;
    return program_.sums().size() * program_.fold().most_pieces * program_.fold().columns *
           sizeof(double);
  }

  std::string how() const override {
    std::string how = program_.is_in_f32() ? "tiles in f32" : "tiles partly in double";
    if (!program_.sums().empty())
      how += ", by blocks of " + std::to_string(std::min(kColumns, program_.fold().columns)) +
             " columns because of the sums";
    return how;
  }

  void run(const RunArgs& args) const override {
    const std::int64_t count = program_.operands().numel(args);
    if (!program_.sums().empty()) return run_columns(args, count);
    parallel_for(count, program_.cost(), [&](std::int64_t begin, std::int64_t end) {
      TileProgram::Tiles tiles(program_, args);
      while (begin < end) {
        const std::int64_t n = program_.operands().tile_at(begin, end);
        run_tile(tiles, args, begin, n);
        begin += n;
      }
    });
  }

 private:
  // Wide, so that memory is read in the order in which it lies.
  static constexpr std::int64_t kColumns = 4096;
  static constexpr std::size_t kMostSums = 4;

  void run_tile(TileProgram::Tiles& tiles, const RunArgs& args, std::int64_t begin,
                std::int64_t n) const {
    void* places[kMostSteps];
    for (std::size_t i = 0; i < out_.size(); ++i)
      places[i] =
          program_.is_dense(static_cast<int>(i)) ? at(args.out[i], begin, out_[i]) : nullptr;
    program_.run(tiles, begin, n, places);
  }

  // Blocks of columns, and pieces of rows as the sums' own kernel cuts them.
  void run_columns(const RunArgs& args, std::int64_t count) const {
    const ColumnFold& fold = program_.fold();
    const std::int64_t columns = fold.columns, rows = columns > 0 ? count / columns : 0;
    const std::int64_t blocks = (columns + kColumns - 1) / kColumns, pieces = fold.pieces(rows);
    const std::int64_t cost = (rows / pieces * std::min(kColumns, columns) + 64) * program_.cost();
    parallel_for(blocks * pieces, cost, [&](std::int64_t begin, std::int64_t end) {
      TileProgram::Tiles tiles(program_, args);
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t c0 = t % blocks * kColumns, piece = t / blocks;
        fold_block(tiles, args, c0, std::min(kColumns, columns - c0),
                   {piece, pieces, rows * piece / pieces, rows * (piece + 1) / pieces});
      }
    });
    if (pieces > 1) combine_pieces(args, pieces);
  }

  // Rows [r0, r1), the share of one of `count` pieces.
  struct Piece {
    std::int64_t index, count, r0, r1;
  };

  // Columns [c0, c0 + n) of a piece's rows: the steps, and each sum's share.
  void fold_block(TileProgram::Tiles& tiles, const RunArgs& args, std::int64_t c0, std::int64_t n,
                  const Piece& piece) const {
    const ColumnFold& fold = program_.fold();
    const auto& sums = program_.sums();
    const std::int64_t columns = fold.columns;
    // Short rows go several to a tile.
    const std::int64_t most = n == columns ? std::max<std::int64_t>(1, kTile / columns) : 1;
    alignas(64) float partial[kMostSums][kColumns];
    alignas(64) double total[kMostSums][kColumns];
    for (std::size_t s = 0; s < sums.size(); ++s) std::fill_n(total[s], n, 0.0);
    for (std::int64_t r0 = piece.r0; r0 < piece.r1;) {
      const std::int64_t stop = std::min(piece.r1, r0 + kRowsInF32);
      for (std::size_t s = 0; s < sums.size(); ++s) std::fill_n(partial[s], n, 0.0f);
      while (r0 < stop) {
        const std::int64_t some = std::min(most, stop - r0);
        for (std::int64_t c = 0; c < n; c += kTile) {
          const std::int64_t m = std::min(kTile, n - c);
          run_tile(tiles, args, r0 * columns + c0 + c, some * m);
          for (std::size_t s = 0; s < sums.size(); ++s)
            for (std::int64_t r = 0; r < some; ++r)
              fold.rows(partial[s] + c, TileProgram::tile_of(tiles, sums[s].value) + r * m, m);
        }
        r0 += some;
      }
      for (std::size_t s = 0; s < sums.size(); ++s)
        for (std::int64_t i = 0; i < n; ++i) total[s][i] += static_cast<double>(partial[s][i]);
    }
    for (std::size_t s = 0; s < sums.size(); ++s) {
      if (piece.count > 1)
        std::copy_n(total[s], n, partials(args, s) + piece.index * columns + c0);
      else
        close_f64(sums[s].dtype, total[s], at(args.out[sums[s].output], c0, sums[s].dtype), n);
    }
  }

  // Of sum s: a row of doubles a piece.
  double* partials(const RunArgs& args, std::size_t s) const {
    return static_cast<double*>(args.scratch) +
           static_cast<std::int64_t>(s) * program_.fold().most_pieces * program_.fold().columns;
  }

  void combine_pieces(const RunArgs& args, std::int64_t pieces) const {
    const std::int64_t columns = program_.fold().columns;
    for (std::size_t s = 0; s < program_.sums().size(); ++s) {
      double* first = partials(args, s);
      for (std::int64_t p = 1; p < pieces; ++p)
        for (std::int64_t i = 0; i < columns; ++i) first[i] += first[p * columns + i];
      const TileProgram::Sum& sum = program_.sums()[s];
      close_f64(sum.dtype, first, args.out[sum.output], columns);
    }
  }

  TileProgram program_;
  std::vector<DType> out_;
};

std::vector<std::pair<int, int>> in_place(const CallSpec& call) {
  const TileProgram program = std::get<TileProgram>(program_of(call));
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < static_cast<int>(call.in.size()); ++i)
    for (int o = 0; o < static_cast<int>(call.out.size()); ++o)
      if (program.may_share(i, o)) pairs.emplace_back(i, o);
  return pairs;
}

}  // namespace

std::vector<Kernel> fused_kernels() {
  return {{"cpu.fused", "fused", accepts, prepare_as<Fused>, in_place}};
}

}  // namespace aloft::cpu
