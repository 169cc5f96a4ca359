// The inside of MatmulGrid, for its own source files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backends/cpu/amx/amx_strip.h"
#include "backends/cpu/matmul/matmul_grid.h"
#include "backends/cpu/matmul/matmul_tiling.h"
#include "backends/cpu/matmul/pack.h"
#include "backends/cpu/matmul/strip_schedule.h"
#include "backends/cpu/matmul/tile_queue.h"
#include "backends/cpu/matmul/vector_strip.h"
#include "backends/cpu/shelf.h"
#include "backends/cpu/vectors/tiles.h"

namespace aloft::cpu {

inline constexpr std::size_t kLine = 64;  // scratch pieces start on cache lines

struct MatmulEngine {
  bool amx = false;
  PackedType packed = PackedType::F32;
  DType type = DType::F32;  // of a packed element
  int planes = 1;
  const char* name = "our own f32 vectors";
  int products = 1;  // of two planes (amx.h)

  // Elements of a step along K, of which packed operands have a multiple.
  std::int64_t unit_k() const { return amx ? kAmxDepth : type == DType::BF16 ? 2 : 1; }
};

// A part of the grid whose operands are packed together. Bounds, cut to what is there.
struct MatmulWave {
  std::int64_t b0, b1, m0, m1, n0, n1, k0, k1;
  std::int64_t depth;     // of this part of K at its bound, padded as the engine wants
  bool first, last;       // parts of K
  bool packs_a, packs_b;  // not there yet from the wave before
  bool symmetric;         // what lies above C's diagonal is not wanted
};

// What one run changes beside its scratch: who takes what, and what a thread's strips have yet to
// write. The rest of the grid is as it was prepared, for all who run it at the same time.
struct MatmulRun {
  std::unique_ptr<TileQueue> queue;
  std::unique_ptr<StripSchedule> schedule;
  std::vector<AmxStrips> strips;  // a thread's own
  std::uint32_t waves = 0;
};

struct MatmulGrid::State {
  MatmulSpec spec;
  MatmulEngine engine;
  MatmulTiling tiling;
  bool pack_a = false, pack_b = false;
  // Strips of 32 columns, B packed in passing: all but what adds to C on the matrix units.
  bool by_strips = false;
  // C^T = B^T A^T is what runs, the roles in `spec` swapped: the smaller operand is the one that
  // must be transposed.
  bool turned = false;
  std::int64_t packed_lda = 0;
  // Elements of one product's packed wave (of one plane).
  std::int64_t a_elements = 0, b_elements = 0;
  std::int64_t a_batch = 0, b_batch = 0;  // distance of two products, all planes
  std::size_t a_at = 0, b_at = 0, bias_at = 0, partial_at = 0, thread_at = 0;
  std::size_t thread_bytes = 0, tile_bytes = 0, bytes = 0;
  int threads = 1;
  Shelf<MatmulRun> runs;
  // By strips: A is packed in pieces of so many rows.
  static constexpr std::int64_t kPieceRows = 64;
  // Of the kernels in vectors, where A is transposed: it is copied in blocks, not turned.
  std::optional<RowBlocks> a_blocks;
  std::int64_t piece_rows() const { return a_blocks ? 3 * a_blocks->rows : kPieceRows; }

  explicit State(const MatmulSpec& s);
  StripKind strip_kind() const;
  void place_scratch();

  std::int64_t a_start(std::int64_t b) const {
    return spec.a_offset.empty() ? b * spec.m * spec.k : spec.a_offset[b];
  }
  std::int64_t b_start(std::int64_t b) const {
    return spec.b_offset.empty() ? b * spec.n * spec.k : spec.b_offset[b];
  }
  MatrixView a_view(const MatmulPointers& p, std::int64_t b) const {
    const MatrixView view{p.a, spec.a, spec.transpose_a ? spec.m : spec.k, spec.transpose_a};
    return {at(p.a, a_start(b), spec.a), view.type, view.ld, view.transposed};
  }
  MatrixView b_view(const MatmulPointers& p, std::int64_t b) const {
    return {at(p.b, b_start(b), spec.b), spec.b, spec.transpose_b ? spec.k : spec.n,
            spec.transpose_b};
  }

  void turn_if_smaller();
  std::unique_ptr<MatmulRun> make_run() const;
  void run_strip_wave(MatmulRun& run, const MatmulPointers& p, const MatmulWave& w,
                      std::uint64_t number) const;
  struct StripPlace {
    std::int64_t b, row, rows, col, cols;
  };
  std::int64_t strips_of(const MatmulWave& w) const;
  StripPlace place_of(const MatmulWave& w, std::int64_t item) const;
  // Where sums of parts of K wait, if they do, for a strip or a tile.
  template <class Strip>
  void place_sums(const MatmulPointers& p, const MatmulWave& w, const StripPlace& at,
                  Strip& strip) const {
    if (tiling.wave_k >= spec.k) return;
    strip.ldp = tiling.wave_n;
    float* sums = reinterpret_cast<float*>(static_cast<char*>(p.scratch) + partial_at) +
                  (at.row - w.m0) * strip.ldp + (at.col - w.n0);
    if (!w.first) strip.partial_in = sums;
    if (!w.last) strip.partial_out = sums;
  }
  // One matrix times itself, one of the two transposed: C is symmetric, to the bit, since an
  // element and its mirror image are the same products in the same order. Then the strips in
  // vectors leave out what lies above the diagonal, and mirror() puts it there when all waves are
  // done.
  bool is_symmetric(const MatmulPointers& p, const MatmulActual& actual) const;
  StripPlace below_diagonal(StripPlace at) const;
  void mirror(const MatmulPointers& p) const;
  void run_vector_wave(MatmulRun& run, const MatmulPointers& p, const MatmulWave& w,
                       std::uint64_t number) const;
  VectorStrip vector_strip(const MatmulPointers& p, const MatmulWave& w,
                           const StripPlace& at) const;
  void pack_band(StripSchedule& schedule, const MatmulPointers& p, const MatmulWave& w,
                 const StripPlace& at, std::uint64_t number) const;
  void run_strip(AmxStrips& strips, const MatmulPointers& p, const MatmulWave& w,
                 const StripPlace& at, const std::uint16_t* panel, const AmxPanelSource* next,
                 std::uint16_t* next_panel) const;
  bool panel_in_units(const MatmulWave& w, const StripPlace& at) const;

  void fill_empty(const MatmulPointers& p, const MatmulActual& actual) const;
  void run_thread(MatmulRun& run, const MatmulPointers& p, const MatmulActual& actual) const;
  void pack_a_tiles(const MatmulPointers& p, const MatmulWave& w, std::int64_t b,
                    std::int64_t row) const;
  // Rows [first, first + rows) of the wave, for the matrix units.
  void pack_a_rows(const MatmulPointers& p, const MatmulWave& w, std::int64_t b, std::int64_t first,
                   std::int64_t rows) const;
  void pack_b_tiles(const MatmulPointers& p, const MatmulWave& w, std::int64_t b,
                    std::int64_t col) const;
  void run_wave(TileQueue& queue, const MatmulPointers& p, const MatmulWave& w,
                std::uint32_t number) const;
  void amx_tile(const MatmulPointers& p, const MatmulWave& w, std::int64_t b, std::int64_t row,
                std::int64_t col) const;
  const float* bias_of(const MatmulPointers& p) const {
    if (!spec.bias) return nullptr;
    if (*spec.bias == DType::F32) return static_cast<const float*>(p.bias);
    return reinterpret_cast<const float*>(static_cast<char*>(p.scratch) + bias_at);
  }
};

}  // namespace aloft::cpu
