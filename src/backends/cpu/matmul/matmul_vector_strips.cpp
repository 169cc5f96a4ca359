// The matrix product by strips in vectors (f32_strip.h, bf16_strip.h). As on the matrix units
// (matmul_strips.cpp), but that a panel of B is packed before its strip; while a strip runs, what
// the next one packs is fetched.
#include <omp.h>

#include "backends/cpu/matmul/bf16_strip.h"
#include "backends/cpu/matmul/f32_strip.h"
#include "backends/cpu/matmul/matmul_state.h"

namespace aloft::cpu {
namespace {

FetchAhead lines_of(const MatrixView& x, std::int64_t k, std::int64_t n) {
  constexpr std::int64_t kBytes = 64;
  const auto element = static_cast<std::int64_t>(size_of(x.type)), row = x.ld * element;
  const auto lines = [&](std::int64_t count) { return ceil_div(count * element, kBytes); };
  const auto* at = static_cast<const char*>(x.data);
  if (x.transposed) return {at, n, row, lines(k), kBytes};
  return {at, lines(n), kBytes, k, row};
}

}  // namespace

VectorStrip MatmulGrid::State::vector_strip(const MatmulPointers& p, const MatmulWave& w,
                                            const StripPlace& at) const {
  const std::int64_t element = size_of(engine.type), unit = engine.unit_k();
  VectorStrip s;
  s.m = at.rows, s.n = at.cols, s.k = ceil_div(w.k1 - w.k0, unit);
  if (pack_a) {
    const char* a = static_cast<const char*>(p.scratch) + a_at + (at.b - w.b0) * a_batch * element;
    if (a_blocks) {
      s.block_rows = a_blocks->rows;
      a += (at.row - w.m0) / s.block_rows * a_blocks->stride * s.k * unit * element;
    } else {
      a += (at.row - w.m0) * packed_lda * element;
      s.lda = packed_lda / unit;
    }
    s.a = reinterpret_cast<const std::uint32_t*>(a);
  } else {
    s.a = static_cast<const std::uint32_t*>(a_view(p, at.b).from(at.row, w.k0).data);
    s.lda = spec.k / unit;
  }
  place_sums(p, w, at, s);
  s.c = cpu::at(p.c, (at.b * spec.m + at.row) * spec.n + at.col, spec.c);
  s.c_type = spec.c;
  s.ldc = spec.n;
  s.bias = bias_of(p) ? bias_of(p) + at.col : nullptr;
  s.accumulate = spec.accumulate;
  // Small results are still in the caches when they are read.
  constexpr std::int64_t kLeastStreamed = std::int64_t{2} << 20;
  s.stream =
      spec.batch * spec.m * spec.n * static_cast<std::int64_t>(size_of(spec.c)) >= kLeastStreamed;
  return s;
}

void MatmulGrid::State::run_vector_wave(MatmulRun& run, const MatmulPointers& p,
                                        const MatmulWave& w, std::uint64_t number) const {
  const int thread = omp_get_thread_num(), team = omp_get_num_threads();
  StripSchedule& schedule = *run.schedule;
  if (thread == 0) schedule.prepare_next(number);
  auto* panel = reinterpret_cast<std::uint32_t*>(static_cast<char*>(p.scratch) + thread_at +
                                                 thread * thread_bytes);
  const bool bf16 = engine.type == DType::BF16;
  const std::int64_t k = w.k1 - w.k0;
  const std::int64_t items = strips_of(w);
  const auto source_of = [&](const StripPlace& at) { return b_view(p, at.b).from(w.k0, at.col); };
  for (std::int64_t item = schedule.take(number, thread, team, items); item >= 0;) {
    const StripPlace whole = place_of(w, item);
    if (w.packs_a) pack_band(schedule, p, w, whole, number);
    const StripPlace at = w.symmetric ? below_diagonal(whole) : whole;
    if (at.rows == 0) {
      item = schedule.take(number, thread, team, items);
      continue;
    }
    VectorStrip strip = vector_strip(p, w, at);
    if (bf16)
      pack_panel(source_of(at), k, strip.n, 2 * strip.k, engine.packed,
                 reinterpret_cast<std::uint16_t*>(panel), 0);
    else
      pack_f32_panel(source_of(at), k, strip.n, reinterpret_cast<float*>(panel));
    strip.b = panel;
    item = schedule.take(number, thread, team, items);
    if (item >= 0) {
      const StripPlace next = place_of(w, item);
      strip.next = lines_of(source_of(next), k, next.cols);
    }
    bf16 ? run_bf16_strip(strip) : run_f32_strip(strip);
  }
}

}  // namespace aloft::cpu
