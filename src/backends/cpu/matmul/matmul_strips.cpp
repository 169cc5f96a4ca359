// The matrix product by strips (amx_strip.h): a band of A's rows stays in a thread's second cache
// while panels of B go by, each packed by the thread itself, in the shadow of the strip before.
#include <omp.h>

#include <algorithm>

#include "backends/cpu/amx/amx.h"
#include "backends/cpu/matmul/matmul_state.h"

namespace aloft::cpu {

// Rows and columns of C past whole blocks go through tiles, which do not turn.
void MatmulGrid::State::turn_if_smaller() {
  if (!spec.transpose_a || spec.transpose_b || spec.bias) return;
  if (spec.n >= spec.m || spec.m % 32 || spec.n % 32) return;
  turned = true;
  std::swap(spec.m, spec.n);
  std::swap(spec.a_offset, spec.b_offset);
}

std::int64_t MatmulGrid::State::strips_of(const MatmulWave& w) const {
  return (w.b1 - w.b0) * ceil_div(w.m1 - w.m0, tiling.tm) * ceil_div(w.n1 - w.n0, tiling.tn);
}

// Items go by products, then bands of rows, then panels: neighbours share the rows of A.
MatmulGrid::State::StripPlace MatmulGrid::State::place_of(const MatmulWave& w,
                                                          std::int64_t item) const {
  const std::int64_t panels = ceil_div(w.n1 - w.n0, tiling.tn);
  const std::int64_t bands = ceil_div(w.m1 - w.m0, tiling.tm);
  const std::int64_t row = w.m0 + item / panels % bands * tiling.tm;
  const std::int64_t col = w.n0 + item % panels * tiling.tn;
  return {w.b0 + item / panels / bands, row, std::min(tiling.tm, w.m1 - row), col,
          std::min(tiling.tn, w.n1 - col)};
}

// Whole panels of a whole depth are packed in units; the others at once, with zeros past the edges.
bool MatmulGrid::State::panel_in_units(const MatmulWave& w, const StripPlace& at) const {
  return at.cols == kAmxPanel && w.k1 - w.k0 == w.depth;
}

void MatmulGrid::State::pack_band(StripSchedule& schedule, const MatmulPointers& p,
                                  const MatmulWave& w, const StripPlace& at,
                                  std::uint64_t number) const {
  const std::int64_t piece = piece_rows();
  const std::int64_t pieces = ceil_div(tiling.wave_m, piece) * (at.b - w.b0);
  const std::int64_t first = (at.row - w.m0) / piece;
  const std::int64_t end = ceil_div(at.row - w.m0 + at.rows, piece);
  for (std::int64_t i = first; i < end; ++i) {
    if (!schedule.claim(pieces + i, number)) continue;
    const std::int64_t row = i * piece;
    pack_a_rows(p, w, at.b, row, std::min(piece, w.m1 - w.m0 - row));
    schedule.made(pieces + i, number);
  }
  for (std::int64_t i = first; i < end; ++i) schedule.wait(pieces + i, number);
}

void MatmulGrid::State::run_strip(AmxStrips& strips, const MatmulPointers& p, const MatmulWave& w,
                                  const StripPlace& at, const std::uint16_t* panel,
                                  const AmxPanelSource* next, std::uint16_t* next_panel) const {
  char* scratch = static_cast<char*>(p.scratch);
  AmxTile t;
  t.n = at.cols;
  t.k = w.depth;
  t.planes = engine.planes;
  t.products = engine.products;
  t.a_plane = a_elements;
  t.b_plane = tiling.wave_k * kAmxPanel;
  if (pack_a) {
    t.a = reinterpret_cast<const std::uint16_t*>(scratch + a_at) + (at.b - w.b0) * a_batch +
          (at.row - w.m0) * packed_lda;
    t.lda = packed_lda;
  } else {
    t.a = static_cast<const std::uint16_t*>(a_view(p, at.b).from(at.row, w.k0).data);
    t.lda = spec.k;
  }
  t.b = panel;
  t.panel_stride = tiling.wave_k * kAmxPanel;
  place_sums(p, w, at, t);
  const std::int64_t place = turned ? at.col * spec.m + at.row : at.row * spec.n + at.col;
  t.c = cpu::at(p.c, at.b * spec.m * spec.n + place, spec.c);
  t.c_type = spec.c;
  t.ldc = turned ? spec.m : spec.n;
  t.bias = bias_of(p) ? bias_of(p) + at.col : nullptr;
  // Whole blocks in strips; the edges as tiles.
  const std::int64_t whole = at.cols == kAmxPanel ? at.rows / 32 * 32 : 0;
  if (whole > 0)
    strips.run({.m = whole,
                .k = t.k,
                .a = t.a,
                .lda = t.lda,
                .b = t.b,
                .planes = t.planes,
                .products = t.products,
                .a_plane = t.a_plane,
                .b_plane = t.b_plane,
                .partial_in = t.partial_in,
                .partial_out = t.partial_out,
                .ldp = t.ldp,
                .c = t.c,
                .c_type = t.c_type,
                .ldc = t.ldc,
                .turned = turned,
                .bias = t.bias,
                .next = next,
                .next_panel = next_panel});
  else if (next)
    AmxStrips::pack(*next, next_panel);
  if (whole == at.rows) return;
  t.m = at.rows - whole;
  t.a += whole * t.lda;
  t.c = cpu::at(t.c, turned ? whole : whole * t.ldc, t.c_type);
  if (t.partial_in) t.partial_in += whole * t.ldp;
  if (t.partial_out) t.partial_out += whole * t.ldp;
  run_amx_tile(t);
}

void MatmulGrid::State::run_strip_wave(MatmulRun& run, const MatmulPointers& p, const MatmulWave& w,
                                       std::uint64_t number) const {
  if (!engine.amx) return run_vector_wave(run, p, w, number);
  const int thread = omp_get_thread_num(), team = omp_get_num_threads();
  StripSchedule& schedule = *run.schedule;
  if (thread == 0) schedule.prepare_next(number);
  const std::int64_t items = strips_of(w);
  auto* panels = reinterpret_cast<std::uint16_t*>(static_cast<char*>(p.scratch) + thread_at +
                                                  thread * thread_bytes);
  const std::int64_t plane = tiling.wave_k * kAmxPanel, panel_elements = plane * engine.planes;
  const auto source_of = [&](const StripPlace& at) {
    const MatrixView view = b_view(p, at.b).from(w.k0, at.col);
    return AmxPanelSource{view.data, view.ld,       w.depth, view.transposed,
                          spec.b,    engine.planes, plane};
  };
  const auto pack_whole = [&](const StripPlace& at, std::uint16_t* panel) {
    if (panel_in_units(w, at))
      AmxStrips::pack(source_of(at), panel);
    else
      pack_panel(b_view(p, at.b).from(w.k0, at.col), w.k1 - w.k0, at.cols, w.depth, engine.packed,
                 panel, plane);
  };
  std::int64_t item = schedule.take(number, thread, team, items);
  bool packed = false;
  for (int turn = 0; item >= 0; turn ^= 1) {
    const StripPlace here = place_of(w, item);
    std::uint16_t *panel = panels + turn * panel_elements,
                  *other = panels + (turn ^ 1) * panel_elements;
    if (!packed) pack_whole(here, panel);
    if (w.packs_a) pack_band(schedule, p, w, here, number);
    item = schedule.take(number, thread, team, items);
    packed = false;
    AmxPanelSource next;
    if (item >= 0) {
      const StripPlace there = place_of(w, item);
      packed = panel_in_units(w, there);
      if (packed) next = source_of(there);
    }
    run_strip(run.strips[thread], p, w, here, panel, packed ? &next : nullptr, other);
  }
  run.strips[thread].finish();
}

}  // namespace aloft::cpu
