#include "backends/cpu/matmul/matmul_grid.h"

#include <omp.h>

#include <algorithm>

#include "backends/cpu/amx/amx.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/matmul/bf16_strip.h"
#include "backends/cpu/matmul/f32_strip.h"
#include "backends/cpu/matmul/matmul_state.h"
#include "backends/cpu/parallel.h"
#include "base/error.h"

namespace aloft::cpu {
namespace {

// Less than this (m * n * k) is done before a second thread has woken up.
constexpr std::int64_t kOneThreadWork = std::int64_t{1} << 18;
// The error of a chain of f32 additions grows with its length; beside the rounding of bf16 operands
// that of a longer one is nothing.
constexpr std::int64_t kF32Chain = 1024;
constexpr std::int64_t kBf16Chain = 3072;

MatmulEngine choose_engine(const MatmulSpec& s) {
  const CpuFeatures& cpu = cpu_features();
  const bool bf16 = s.a == DType::BF16 && s.b == DType::BF16;
  if (cpu.amx_bf16 && bf16) return {true, PackedType::Bf16, DType::BF16, 1, "amx bf16"};
  if (cpu.amx_bf16 && s.a == DType::F16 && s.b == DType::F16)
    return {true, PackedType::Bf16x2,  DType::BF16,
            2,    "amx f16 by halves", s.c == DType::F32 ? 4 : 3};
  if (cpu.amx_bf16 && s.form == ProductForm::Bf16x6)
    return {true, PackedType::Bf16x3, DType::BF16, 3, "amx f32 by bf16x6", 6};
  if (cpu.amx_bf16 && s.form == ProductForm::Bf16x3)
    return {true, PackedType::Bf16x2, DType::BF16, 2, "amx f32 by bf16x3", 3};
  if (cpu.avx512_bf16 && bf16)
    return {false, PackedType::Bf16, DType::BF16, 1, "our own bf16 vectors"};
  return {};
}

}  // namespace

MatmulGrid::State::State(const MatmulSpec& s) : spec(s), engine(choose_engine(s)) {
  ensure(has_tiles(s.a) && has_tiles(s.b) && has_tiles(s.c), "a matmul's types are floats");
  ensure(fits_operands(s.form, s.a, s.b), "the form of a product fits its operands");
  threads = std::max(1, s.threads);
  by_strips = !engine.amx || !s.accumulate;
  pack_a = s.a != engine.type || s.transpose_a ||
           (engine.unit_k() > 1 && (s.k % engine.unit_k() || s.k_varies));
  // Rows a multiple of 4 KiB apart share cache sets; a wide product in vectors pays for a copy.
  const int bytes_of = static_cast<int>(size_of(engine.type)) * engine.planes;
  if (!engine.amx) pack_a = pack_a || (s.k * bytes_of % 4096 == 0 && s.n >= 1024);
  pack_b = !by_strips;
  if (by_strips && engine.amx) turn_if_smaller();
  if (!engine.amx && s.transpose_a)
    a_blocks = engine.type == DType::BF16 ? kBf16Blocks : f32_blocks();
  const MatmulExtent extent{spec.batch, spec.m, spec.n, spec.k};
  StripKind strip = strip_kind();
  if (a_blocks)
    strip.unit_m = a_blocks->rows =
        rows_a_block(choose_strips(extent, strip, threads).tm, a_blocks->rows);
  tiling =
      by_strips ? choose_strips(extent, strip, threads) : choose_tiling(extent, {pack_a, bytes_of});
  place_scratch();
  runs = Shelf<MatmulRun>([this] { return make_run(); }, 1);
}

StripKind MatmulGrid::State::strip_kind() const {
  const int bytes = static_cast<int>(size_of(engine.type)) * engine.planes;
  if (engine.amx) return {32, kAmxDepth, pack_a, bytes, engine.planes};
  return {
      1, engine.unit_k(), pack_a, bytes, 1, engine.type == DType::BF16 ? kBf16Chain : kF32Chain};
}

std::unique_ptr<MatmulRun> MatmulGrid::State::make_run() const {
  auto run = std::make_unique<MatmulRun>();
  if (by_strips) {
    const std::int64_t pieces = pack_a ? tiling.group * ceil_div(tiling.wave_m, piece_rows()) : 0;
    run->schedule = std::make_unique<StripSchedule>(threads, pieces);
    if (engine.amx) run->strips.resize(threads);
  } else {
    run->queue = std::make_unique<TileQueue>(
        tiling.group, ceil_div(std::min(tiling.wave_m, spec.m), tiling.tm),
        ceil_div(std::min(tiling.wave_n, spec.n), tiling.tn), pack_a, pack_b);
  }
  return run;
}

void MatmulGrid::State::place_scratch() {
  const MatmulTiling& t = tiling;
  packed_lda = t.wave_k;
  // Rows a power of two apart share few cache sets.
  const std::int64_t bytes_a_row = packed_lda * static_cast<std::int64_t>(size_of(engine.type));
  if (bytes_a_row % 1024 == 0) packed_lda += kAmxDepth;
  a_elements = t.wave_m * packed_lda;
  b_elements = t.wave_n * t.wave_k;
  if (a_blocks) a_elements = ceil_div(t.wave_m, a_blocks->rows) * a_blocks->stride * t.wave_k;
  a_batch = a_elements * engine.planes;
  b_batch = b_elements * engine.planes;
  auto take = [&](std::size_t size) {
    const std::size_t start = bytes;
    bytes = round_up(bytes + size, kLine);
    return start;
  };
  const std::size_t element = size_of(engine.type);
  if (pack_a) a_at = take(t.group * a_batch * element);
  if (pack_b) b_at = take(t.group * b_batch * element);
  if (spec.bias && *spec.bias != DType::F32) bias_at = take(spec.n * sizeof(float));
  const bool sums_wait = t.wave_k < spec.k;
  if (sums_wait) partial_at = take(t.wave_m * t.wave_n * sizeof(float));
  if (!by_strips && t.pass_k < t.wave_k && !sums_wait) tile_bytes = t.tm * t.tn * sizeof(float);
  thread_bytes = round_up(tile_bytes, kLine);
  if (by_strips) thread_bytes = 2 * t.wave_k * kAmxPanel * element * engine.planes;  // two panels
  thread_at = bytes;
  bytes += thread_bytes * threads;
}

// Without a depth: the bias, and C's old value where it is added to.
void MatmulGrid::State::fill_empty(const MatmulPointers& p, const MatmulActual& actual) const {
  constexpr std::int64_t kRun = 256;
  const float* bias = bias_of(p);
  float sums[kRun], old[kRun];
  for (std::int64_t row = 0; row < actual.batch * actual.m; ++row)
    for (std::int64_t col = 0; col < spec.n; col += kRun) {
      // Rows of a batch lie as far apart as its bound has them.
      const std::int64_t at_row = row / actual.m * spec.m + row % actual.m;
      const std::int64_t cols = std::min(kRun, spec.n - col);
      void* c = at(p.c, at_row * spec.n + col, spec.c);
      for (std::int64_t j = 0; j < cols; ++j) sums[j] = bias ? bias[col + j] : 0.0f;
      if (spec.accumulate) {
        widen(spec.c, c, old, cols);
        for (std::int64_t j = 0; j < cols; ++j) sums[j] += old[j];
      }
      narrow(sums, spec.c, c, cols);
    }
}

void MatmulGrid::State::amx_tile(const MatmulPointers& p, const MatmulWave& w, std::int64_t b,
                                 std::int64_t row, std::int64_t col) const {
  char* scratch = static_cast<char*>(p.scratch);
  AmxTile t;
  t.m = std::min(tiling.tm, w.m1 - row);
  t.n = std::min(tiling.tn, w.n1 - col);
  t.planes = engine.planes;
  t.products = engine.products;
  if (pack_a) {
    t.a = reinterpret_cast<const std::uint16_t*>(scratch + a_at) + (b - w.b0) * a_batch +
          (row - w.m0) * packed_lda;
    t.lda = packed_lda;
  } else {
    t.a = static_cast<const std::uint16_t*>(a_view(p, b).from(row, w.k0).data);
    t.lda = spec.k;
  }
  t.a_plane = a_elements;
  t.b = reinterpret_cast<const std::uint16_t*>(scratch + b_at) + (b - w.b0) * b_batch +
        (col - w.n0) * tiling.wave_k;
  t.panel_stride = tiling.wave_k * kAmxPanel;
  t.b_plane = b_elements;
  // Sums between passes over K: the tile's own, or the wave's where the next wave goes on with
  // them.
  float* partial = nullptr;
  t.ldp = tile_bytes ? tiling.tn : tiling.wave_n;
  if (tile_bytes)
    partial = reinterpret_cast<float*>(scratch + thread_at + omp_get_thread_num() * thread_bytes);
  else if (tiling.wave_k < spec.k)
    partial = reinterpret_cast<float*>(scratch + partial_at) + (row - w.m0) * t.ldp + (col - w.n0);
  t.c = at(p.c, (b * spec.m + row) * spec.n + col, spec.c);
  t.c_type = spec.c;
  t.ldc = spec.n;
  t.bias = bias_of(p) ? bias_of(p) + col : nullptr;
  t.accumulate = spec.accumulate;
  for (std::int64_t k = 0; k < w.depth; k += tiling.pass_k) {
    t.k = std::min(tiling.pass_k, w.depth - k);
    t.partial_in = w.first && k == 0 ? nullptr : partial;
    t.partial_out = w.last && k + t.k >= w.depth ? nullptr : partial;
    run_amx_tile(t);
    t.a += t.k;
    t.b += t.k * kAmxPanel;
  }
}

void MatmulGrid::State::run_wave(TileQueue& queue, const MatmulPointers& p, const MatmulWave& w,
                                 std::uint32_t number) const {
  if (omp_get_thread_num() == 0) queue.prepare_next(number);
  while (const TileQueue::Item* item = queue.take(number)) {
    const std::int64_t b = w.b0 + item->product;
    const std::int64_t row = w.m0 + item->row * tiling.tm, col = w.n0 + item->column * tiling.tn;
    if (b >= w.b1 || row >= w.m1 || col >= w.n1) continue;
    if (item->kind == TileQueue::Kind::Tile) {
      if (w.packs_b) queue.wait(*item, false, number);
      if (w.packs_a) queue.wait(*item, true, number);
      amx_tile(p, w, b, row, col);
      continue;
    }
    if (item->kind == TileQueue::Kind::PackRow && w.packs_a) pack_a_tiles(p, w, b, row);
    if (item->kind == TileQueue::Kind::PackColumn && w.packs_b) pack_b_tiles(p, w, b, col);
    queue.packed(*item, number);
  }
}

void MatmulGrid::State::run_thread(MatmulRun& run, const MatmulPointers& p,
                                   const MatmulActual& actual) const {
  if (bias_of(p) && *spec.bias != DType::F32) {
#pragma omp single
    widen(*spec.bias, p.bias, const_cast<float*>(bias_of(p)), spec.n);
  }
  const MatmulTiling& t = tiling;
  const std::uint64_t first = by_strips ? run.schedule->first_wave() : run.queue->first_wave();
  std::uint64_t number = first;
  const bool symmetric = is_symmetric(p, actual);
  std::int64_t b_n = -1, b_k = -1, a_m = -1, a_k = -1;  // what the packed buffers hold
  for (std::int64_t b = 0; b < actual.batch; b += t.group, b_n = a_m = -1)
    for (std::int64_t n = 0; n < spec.n; n += t.wave_n)
      for (std::int64_t m = 0; m < actual.m; m += t.wave_m)
        for (std::int64_t k = 0; k < actual.k; k += t.wave_k) {
          MatmulWave w;
          w.b0 = b, w.b1 = std::min(actual.batch, b + t.group);
          w.m0 = m, w.m1 = std::min(actual.m, m + t.wave_m);
          w.n0 = n, w.n1 = std::min(spec.n, n + t.wave_n);
          w.k0 = k, w.k1 = std::min(actual.k, k + t.wave_k);
          w.depth = round_up(std::min(t.wave_k, spec.k - k), engine.unit_k());
          w.first = k == 0, w.last = k + t.wave_k >= actual.k;
          w.packs_b = pack_b && (b_n != n || b_k != k);
          w.packs_a = pack_a && (a_m != m || a_k != k);
          w.symmetric = symmetric;
          b_n = n, b_k = a_k = k, a_m = m;
          const bool ends = w.last && w.m1 == actual.m && w.n1 == spec.n && w.b1 == actual.batch;
          if (by_strips)
            run_strip_wave(run, p, w, number++);
          else
            run_wave(*run.queue, p, w, number++);
          if (!ends) {
#pragma omp barrier
          }
        }
  if (omp_get_thread_num() == 0) run.waves = number - first;
  if (symmetric) {
#pragma omp barrier
    mirror(p);
  }
}

MatmulGrid::MatmulGrid(const MatmulSpec& spec) : state_(std::make_unique<State>(spec)) {}
MatmulGrid::~MatmulGrid() = default;

std::size_t MatmulGrid::scratch_bytes() const { return state_->bytes; }
const char* MatmulGrid::engine() const { return state_->engine.name; }

std::string MatmulGrid::how() const {
  const State& s = *state_;
  const MatmulTiling& t = s.tiling;
  std::string how = std::string(s.engine.name) + ", ";
  if (s.by_strips) {
    how += "strips of " + std::to_string(t.tn) + " columns past bands of " + std::to_string(t.tm) +
           " rows";
  } else {
    how += "tiles of " + std::to_string(t.tm) + " x " + std::to_string(t.tn) +
           " (no strips: it adds to C)";
  }
  if (t.wave_k < s.spec.k) how += ", K in parts of " + std::to_string(t.wave_k);
  if (s.turned) how += ", C^T computed because the larger operand is the transposed one";
  if (s.pack_a)
    how += std::string(s.turned ? ", B" : ", A") + " packed first" +
           (s.spec.a != s.engine.type ? ": another type"
            : s.spec.transpose_a      ? ": transposed"
            : s.spec.k_varies         ? ": its depth varies"
            : s.spec.k % s.engine.unit_k()
                ? ": its depth is no multiple of " + std::to_string(s.engine.unit_k())
                : ": its rows share cache sets");
  return how;
}

void MatmulGrid::run(const MatmulPointers& pointers, const MatmulActual& there) const {
  const State& s = *state_;
  MatmulPointers p = pointers;
  MatmulActual actual = there;
  if (s.turned) {
    // The rows of a transposed A are not outermost, so that their number is constant.
    ensure(actual.m == s.spec.n, "a transposed operand's rows vary");
    std::swap(p.a, p.b);
    actual.m = s.spec.m;
  }
  if (actual.batch == 0 || actual.m == 0 || s.spec.n == 0) return;
  if (actual.k == 0) {
    if (s.spec.bias && *s.spec.bias != DType::F32)
      widen(*s.spec.bias, p.bias, const_cast<float*>(s.bias_of(p)), s.spec.n);
    s.fill_empty(p, actual);
    return;
  }
  const std::int64_t work = actual.batch * actual.m * s.spec.n * actual.k;
  const auto run = s.runs.take();
  on_team(work <= kOneThreadWork ? 1 : s.threads, [&] { s.run_thread(*run, p, actual); });
  if (s.by_strips)
    run->schedule->finish(run->waves);
  else
    run->queue->finish(run->waves);
}

}  // namespace aloft::cpu
