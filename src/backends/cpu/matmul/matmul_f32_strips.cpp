// The matrix product by strips of the f32 kernel (f32_strip.h). As on the matrix units
// (matmul_strips.cpp), but that a panel of B is packed before its strip; while a strip runs, what
// the next one packs is fetched.
#include <omp.h>

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

F32Strip MatmulGrid::State::f32_strip(const MatmulPointers& p, const MatmulWave& w,
                                      const StripPlace& at) const {
  char* scratch = static_cast<char*>(p.scratch);
  F32Strip s;
  s.m = at.rows, s.n = at.cols, s.k = w.k1 - w.k0;
  if (pack_a) {
    s.a = reinterpret_cast<const float*>(scratch + a_at) + (at.b - w.b0) * a_batch;
    if (a_blocks) {
      s.block_rows = a_blocks->rows;
      s.a += (at.row - w.m0) / s.block_rows * a_blocks->stride * s.k;
    } else {
      s.a += (at.row - w.m0) * packed_lda;
      s.lda = packed_lda;
    }
  } else {
    s.a = static_cast<const float*>(a_view(p, at.b).from(at.row, w.k0).data);
    s.lda = spec.k;
  }
  place_sums(p, w, at, s);
  s.c = cpu::at(p.c, (at.b * spec.m + at.row) * spec.n + at.col, spec.c);
  s.c_type = spec.c;
  s.ldc = spec.n;
  s.bias = bias_of(p) ? bias_of(p) + at.col : nullptr;
  s.accumulate = spec.accumulate;
  // Small results are still in the caches when they are read.
  constexpr std::int64_t kLeastStreamed = std::int64_t{2} << 20;
  s.stream = spec.batch * spec.m * spec.n * std::int64_t{sizeof(float)} >= kLeastStreamed;
  return s;
}

void MatmulGrid::State::run_f32_wave(MatmulRun& run, const MatmulPointers& p, const MatmulWave& w,
                                     std::uint64_t number) const {
  const int thread = omp_get_thread_num(), team = omp_get_num_threads();
  StripSchedule& schedule = *run.schedule;
  if (thread == 0) schedule.prepare_next(number);
  auto* panel =
      reinterpret_cast<float*>(static_cast<char*>(p.scratch) + thread_at + thread * thread_bytes);
  const std::int64_t items = strips_of(w);
  const auto source_of = [&](const StripPlace& at) { return b_view(p, at.b).from(w.k0, at.col); };
  for (std::int64_t item = schedule.take(number, thread, team, items); item >= 0;) {
    const StripPlace at = place_of(w, item);
    if (w.packs_a) pack_band(schedule, p, w, at, number);
    F32Strip strip = f32_strip(p, w, at);
    pack_f32_panel(source_of(at), strip.k, strip.n, panel);
    strip.b = panel;
    item = schedule.take(number, thread, team, items);
    if (item >= 0) {
      const StripPlace next = place_of(w, item);
      strip.next = lines_of(source_of(next), strip.k, next.cols);
    }
    run_f32_strip(strip);
  }
}

}  // namespace aloft::cpu
