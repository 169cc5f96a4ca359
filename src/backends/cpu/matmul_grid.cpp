#include "backends/cpu/matmul_grid.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/amx.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/matmul_tiling.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/pack.h"
#include "backends/cpu/tiles.h"
#include "base/error.h"

namespace aloft::cpu {
namespace {

constexpr std::size_t kLine = 64;  // scratch pieces start on cache lines
constexpr std::int64_t kPackRows = 32;
// Less than this (m * n * k) is done before a second thread has woken up.
constexpr std::int64_t kOneThreadWork = std::int64_t{1} << 18;

struct Engine {
  bool amx = false;
  PackedType packed = PackedType::F32;
  DType type = DType::F32;  // of a packed element
  int planes = 1;
  const char* name = "onednn f32";
};

Engine choose_engine(const MatmulSpec& s) {
  const CpuFeatures& cpu = cpu_features();
  const bool bf16 = s.a == DType::BF16 && s.b == DType::BF16;
  if (cpu.amx_bf16 && bf16) return {true, PackedType::Bf16, DType::BF16, 1, "amx bf16"};
  if (cpu.amx_bf16 && s.a == DType::F16 && s.b == DType::F16)
    return {true, PackedType::Bf16x2, DType::BF16, 2, "amx f16 by halves"};
  if (cpu.avx512_bf16 && bf16) return {false, PackedType::Bf16, DType::BF16, 1, "onednn bf16"};
  return {};
}

// A part of the grid whose operands are packed together. Bounds, cut to what is there.
struct Wave {
  std::int64_t b0, b1, m0, m1, n0, n1, k0, k1;
  std::int64_t depth;  // of this part of K at its bound, padded as the engine wants
  bool first, last;    // parts of K
};

}  // namespace

struct MatmulGrid::State {
  MatmulSpec spec;
  Engine engine;
  MatmulTiling tiling;
  bool pack_a = false, pack_b = false;
  bool direct = false;  // oneDNN writes C itself
  std::int64_t packed_lda = 0, packed_ldb = 0;
  // Elements of one product's packed wave (of one plane).
  std::int64_t a_elements = 0, b_elements = 0;
  std::int64_t a_batch = 0, b_batch = 0;  // distance of two products, all planes
  std::size_t a_at = 0, b_at = 0, bias_at = 0, partial_at = 0, thread_at = 0;
  std::size_t thread_bytes = 0, tile_bytes = 0, bytes = 0;
  int threads = 1;
  std::vector<std::unique_ptr<OneDnnMatmul>> primitives;  // by variant()
  std::vector<OneDnnCall> calls;                          // [thread][variant]

  static constexpr int kVariants = 16;
  static int variant(bool whole_m, bool whole_n, bool whole_k, bool first) {
    return whole_m + 2 * whole_n + 4 * whole_k + 8 * first;
  }

  explicit State(const MatmulSpec& s);
  void place_scratch();
  void make_primitives();

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

  void fill_empty(const MatmulPointers& p, const MatmulActual& actual) const;
  void run_thread(const MatmulPointers& p, const MatmulActual& actual);
  void pack_a_rows(const MatmulPointers& p, const Wave& w, std::int64_t piece);
  void pack_b_rows(const MatmulPointers& p, const Wave& w, std::int64_t piece);
  void pack_stored(const MatrixView& source, bool k_rows, std::int64_t k_there, std::int64_t depth,
                   std::int64_t others, std::int64_t piece, char* dst, std::int64_t ldd) const;
  std::int64_t pieces_a(const Wave& w) const {
    const bool k_rows = !engine.amx && spec.transpose_a;
    return ceil_div(k_rows ? w.depth : w.m1 - w.m0, kPackRows);
  }
  std::int64_t pieces_b(const Wave& w) const {
    const bool k_rows = !engine.amx && !spec.transpose_b;
    return ceil_div(k_rows ? w.depth : w.n1 - w.n0, kPackRows);
  }
  void run_wave(const MatmulPointers& p, const Wave& w);
  void amx_tile(const MatmulPointers& p, const Wave& w, std::int64_t b, std::int64_t row,
                std::int64_t col);
  void onednn_tile(const MatmulPointers& p, const Wave& w, std::int64_t b, std::int64_t row,
                   std::int64_t col);
  void finish_tile(const MatmulPointers& p, std::int64_t b, std::int64_t row, std::int64_t rows,
                   std::int64_t col, std::int64_t cols, float* sums, std::int64_t ld) const;
  const float* bias_of(const MatmulPointers& p) const {
    if (!spec.bias) return nullptr;
    if (*spec.bias == DType::F32) return static_cast<const float*>(p.bias);
    return reinterpret_cast<const float*>(static_cast<char*>(p.scratch) + bias_at);
  }
};

MatmulGrid::State::State(const MatmulSpec& s) : spec(s), engine(choose_engine(s)) {
  ensure(has_tiles(s.a) && has_tiles(s.b) && has_tiles(s.c), "a matmul's types are floats");
  threads = std::max(1, s.threads);
  if (engine.amx) {
    pack_a = s.a != engine.type || s.transpose_a || s.k % kAmxDepth || s.k_varies;
    pack_b = true;
  } else {
    pack_a = s.a != engine.type || s.k_varies;
    pack_b = s.b != engine.type || s.k_varies;
  }
  const int bytes_of = static_cast<int>(size_of(engine.type)) * engine.planes;
  tiling =
      choose_tiling({s.batch, s.m, s.n, s.k}, {engine.amx, pack_a, pack_b, bytes_of, bytes_of});
  direct = !engine.amx && (s.c == DType::F32 || (s.c == engine.type && tiling.wave_k >= s.k));
  place_scratch();
  if (!engine.amx && s.batch && s.m && s.n && s.k) make_primitives();
}

void MatmulGrid::State::place_scratch() {
  const MatmulTiling& t = tiling;
  const bool a_rows = engine.amx || !spec.transpose_a, b_rows = !engine.amx && !spec.transpose_b;
  packed_lda = a_rows ? t.wave_k : t.wave_m;
  // Rows a power of two apart share few cache sets.
  if (engine.amx && packed_lda * 2 % 1024 == 0) packed_lda += kAmxDepth;
  packed_ldb = b_rows ? t.wave_n : t.wave_k;
  a_elements = (a_rows ? t.wave_m : t.wave_k) * packed_lda;
  b_elements = t.wave_n * t.wave_k;
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
  const bool sums_wait = !direct && t.wave_k < spec.k;
  if (sums_wait) partial_at = take(t.wave_m * t.wave_n * sizeof(float));
  const bool sums_of_tile = engine.amx ? t.pass_k < t.wave_k : !direct;
  if (sums_of_tile && !sums_wait) tile_bytes = t.tm * t.tn * sizeof(float);
  thread_bytes = round_up(tile_bytes, kLine);
  thread_at = bytes;
  bytes += thread_bytes * threads;
}

void MatmulGrid::State::make_primitives() {
  const MatmulTiling& t = tiling;
  std::size_t library_scratch = 0;
  primitives.resize(kVariants);
  auto parts = [](std::int64_t extent, std::int64_t part) {
    std::vector<std::int64_t> lengths;
    if (extent >= part) lengths.push_back(part);
    if (extent % part) lengths.push_back(extent % part);
    return lengths;
  };
  OneDnnMatmulShape shape;
  shape.in = engine.type;
  shape.out = direct ? spec.c : DType::F32;
  shape.transpose_a = spec.transpose_a;
  shape.transpose_b = spec.transpose_b;
  shape.lda = pack_a ? packed_lda : spec.transpose_a ? spec.m : spec.k;
  shape.ldb = pack_b ? packed_ldb : spec.transpose_b ? spec.k : spec.n;
  shape.ldc = direct ? spec.n : tile_bytes ? t.tn : t.wave_n;
  for (const std::int64_t m : parts(spec.m, t.tm))
    for (const std::int64_t n : parts(spec.n, t.tn))
      for (const std::int64_t k : parts(spec.k, t.wave_k))
        for (const bool first : {true, false}) {
          if (!first && t.wave_k >= spec.k) continue;
          shape.m = m, shape.n = n, shape.k = k;
          shape.bias = direct && first && spec.bias;
          shape.accumulate = !first || (direct && spec.accumulate);
          auto& made = primitives[variant(m == t.tm, n == t.tn, k == t.wave_k, first)];
          made = std::make_unique<OneDnnMatmul>(shape);
          library_scratch = std::max(library_scratch, made->scratch_bytes());
        }
  thread_bytes = round_up(tile_bytes, kLine) + round_up(library_scratch, kLine);
  bytes = thread_at + thread_bytes * threads;
  calls.resize(static_cast<std::size_t>(threads) * kVariants);
  for (std::size_t i = 0; i < calls.size(); ++i)
    if (const auto& made = primitives[i % kVariants]) calls[i] = made->call();
}

void MatmulGrid::State::fill_empty(const MatmulPointers& p, const MatmulActual& actual) const {
  constexpr std::int64_t kRun = 256;
  float zeros[kRun];
  for (std::int64_t b = 0; b < actual.batch; ++b)
    for (std::int64_t row = 0; row < actual.m; ++row)
      for (std::int64_t col = 0; col < spec.n; col += kRun) {
        std::fill(zeros, zeros + kRun, 0.0f);
        finish_tile(p, b, row, 1, col, std::min(kRun, spec.n - col), zeros, kRun);
      }
}

// Rounds sums into C, with the bias and C's old value added first. Spoils the sums.
void MatmulGrid::State::finish_tile(const MatmulPointers& p, std::int64_t b, std::int64_t row,
                                    std::int64_t rows, std::int64_t col, std::int64_t cols,
                                    float* sums, std::int64_t ld) const {
  const float* bias = bias_of(p);
  constexpr std::int64_t kRun = 256;
  float old[kRun];
  for (std::int64_t r = 0; r < rows; ++r) {
    float* line = sums + r * ld;
    void* c = at(p.c, (b * spec.m + row + r) * spec.n + col, spec.c);
    if (bias)
      for (std::int64_t j = 0; j < cols; ++j) line[j] += bias[col + j];
    if (spec.accumulate)
      for (std::int64_t j0 = 0; j0 < cols; j0 += kRun) {
        const std::int64_t run = std::min(kRun, cols - j0);
        widen(spec.c, at(c, j0, spec.c), old, run);
        for (std::int64_t j = 0; j < run; ++j) line[j0 + j] += old[j];
      }
    narrow(line, spec.c, c, cols);
  }
}

// One piece of an operand that keeps its stored orientation: `k_rows` says that rows run along K.
void MatmulGrid::State::pack_stored(const MatrixView& source, bool k_rows, std::int64_t k_there,
                                    std::int64_t depth, std::int64_t others, std::int64_t piece,
                                    char* dst, std::int64_t ldd) const {
  const MatrixView stored{source.data, source.type, source.ld, false};
  const std::int64_t first = piece * kPackRows;
  const std::int64_t rows = std::min(kPackRows, (k_rows ? depth : others) - first);
  const std::int64_t element = size_of(engine.type);
  char* to = dst + first * ldd * element;
  if (!k_rows) {
    pack_dense(stored.from(first, 0), rows, k_there, depth, engine.packed, to, ldd, 0);
    return;
  }
  const std::int64_t there = std::clamp<std::int64_t>(k_there - first, 0, rows);
  pack_dense(stored.from(first, 0), there, others, others, engine.packed, to, ldd, 0);
  std::memset(to + there * ldd * element, 0, (rows - there) * ldd * element);
}

void MatmulGrid::State::pack_a_rows(const MatmulPointers& p, const Wave& w, std::int64_t piece) {
  const std::int64_t per = pieces_a(w), b = w.b0 + piece / per, part = piece % per;
  const std::int64_t element = size_of(engine.type);
  char* dst = static_cast<char*>(p.scratch) + a_at + (b - w.b0) * a_batch * element;
  const MatrixView source = a_view(p, b).from(w.m0, w.k0);
  if (!engine.amx) {
    pack_stored(source, spec.transpose_a, w.k1 - w.k0, w.depth, w.m1 - w.m0, part, dst, packed_lda);
    return;
  }
  const std::int64_t first = part * kPackRows, rows = std::min(kPackRows, w.m1 - w.m0 - first);
  pack_dense(source.from(first, 0), rows, w.k1 - w.k0, w.depth, engine.packed,
             dst + first * packed_lda * element, packed_lda, a_elements);
}

void MatmulGrid::State::pack_b_rows(const MatmulPointers& p, const Wave& w, std::int64_t piece) {
  const std::int64_t per = pieces_b(w), b = w.b0 + piece / per, part = piece % per;
  const std::int64_t element = size_of(engine.type);
  char* dst = static_cast<char*>(p.scratch) + b_at + (b - w.b0) * b_batch * element;
  const MatrixView source = b_view(p, b).from(w.k0, w.n0);
  if (!engine.amx) {
    pack_stored(source, !spec.transpose_b, w.k1 - w.k0, w.depth, w.n1 - w.n0, part, dst,
                packed_ldb);
    return;
  }
  const std::int64_t first = part * kAmxPanel, cols = std::min(kAmxPanel, w.n1 - w.n0 - first);
  pack_panel(source.from(0, first), w.k1 - w.k0, cols, w.depth, engine.packed,
             reinterpret_cast<std::uint16_t*>(dst) + first * tiling.wave_k, b_elements);
}

void MatmulGrid::State::amx_tile(const MatmulPointers& p, const Wave& w, std::int64_t b,
                                 std::int64_t row, std::int64_t col) {
  char* scratch = static_cast<char*>(p.scratch);
  AmxTile t;
  t.m = std::min(tiling.tm, w.m1 - row);
  t.n = std::min(tiling.tn, w.n1 - col);
  t.planes = engine.planes;
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
  float* partial =
      reinterpret_cast<float*>(scratch + partial_at) + (row - w.m0) * tiling.wave_n + (col - w.n0);
  t.ldp = tiling.wave_n;
  if (tile_bytes) {
    partial = reinterpret_cast<float*>(scratch + thread_at + omp_get_thread_num() * thread_bytes);
    t.ldp = tiling.tn;
  }
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

void MatmulGrid::State::onednn_tile(const MatmulPointers& p, const Wave& w, std::int64_t b,
                                    std::int64_t row, std::int64_t col) {
  char* scratch = static_cast<char*>(p.scratch);
  const int thread = omp_get_thread_num();
  char* own = scratch + thread_at + thread * thread_bytes;
  // Shapes follow the bounds, so that a primitive is never made during a run; rows past the actual
  // ones hold anything.
  const std::int64_t rows = std::min(tiling.tm, spec.m - row),
                     cols = std::min(tiling.tn, w.n1 - col);
  auto packed = [&](std::size_t from, std::int64_t batch_stride, const MatrixView& stored,
                    std::int64_t ld, std::int64_t r, std::int64_t c) {
    const MatrixView view{scratch + from + (b - w.b0) * batch_stride * size_of(engine.type),
                          engine.type, ld, stored.transposed};
    return view.from(r, c).data;
  };
  const MatrixView va = a_view(p, b), vb = b_view(p, b);
  const void* a =
      pack_a ? packed(a_at, a_batch, va, packed_lda, row - w.m0, 0) : va.from(row, w.k0).data;
  const void* bb =
      pack_b ? packed(b_at, b_batch, vb, packed_ldb, 0, col - w.n0) : vb.from(w.k0, col).data;
  void* c = at(p.c, (b * spec.m + row) * spec.n + col, spec.c);
  float* sums = tile_bytes ? reinterpret_cast<float*>(own)
                           : reinterpret_cast<float*>(scratch + partial_at) +
                                 (row - w.m0) * tiling.wave_n + (col - w.n0);
  if (!direct) c = sums;
  OneDnnCall& call = calls[thread * kVariants + variant(rows == tiling.tm, cols == tiling.tn,
                                                        w.depth == tiling.wave_k, w.first)];
  void* library_scratch = own + round_up(tile_bytes, kLine);
  if (direct && w.first && spec.bias)
    call.run({a, bb, c, library_scratch, bias_of(p) + col});
  else
    call.run({a, bb, c, library_scratch});
  if (!direct && w.last)
    finish_tile(p, b, row, rows, col, cols, sums, tile_bytes ? tiling.tn : tiling.wave_n);
}

void MatmulGrid::State::run_wave(const MatmulPointers& p, const Wave& w) {
  const std::int64_t row_tiles = ceil_div(w.m1 - w.m0, tiling.tm);
  const std::int64_t col_tiles = ceil_div(w.n1 - w.n0, tiling.tn);
#pragma omp for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < (w.b1 - w.b0) * row_tiles * col_tiles; ++i) {
    const std::int64_t b = w.b0 + i / (row_tiles * col_tiles);
    const std::int64_t col = w.n0 + i / row_tiles % col_tiles * tiling.tn;
    const std::int64_t row = w.m0 + i % row_tiles * tiling.tm;
    if (engine.amx)
      amx_tile(p, w, b, row, col);
    else
      onednn_tile(p, w, b, row, col);
  }
}

void MatmulGrid::State::run_thread(const MatmulPointers& p, const MatmulActual& actual) {
  const OneThread one;
  if (bias_of(p) && *spec.bias != DType::F32) {
#pragma omp single
    widen(*spec.bias, p.bias, const_cast<float*>(bias_of(p)), spec.n);
  }
  const MatmulTiling& t = tiling;
  std::int64_t b_n = -1, b_k = -1, a_m = -1, a_k = -1;  // what the packed buffers hold
  for (std::int64_t b = 0; b < actual.batch; b += t.group, b_n = a_m = -1)
    for (std::int64_t n = 0; n < spec.n; n += t.wave_n)
      for (std::int64_t m = 0; m < actual.m; m += t.wave_m)
        for (std::int64_t k = 0; k < actual.k; k += t.wave_k) {
          Wave w{b,
                 std::min(actual.batch, b + t.group),
                 m,
                 std::min(actual.m, m + t.wave_m),
                 n,
                 std::min(spec.n, n + t.wave_n),
                 k,
                 std::min(actual.k, k + t.wave_k),
                 0,
                 k == 0,
                 k + t.wave_k >= actual.k};
          w.depth = std::min(t.wave_k, spec.k - k);
          if (engine.amx) w.depth = round_up(w.depth, kAmxDepth);
          if (pack_b && (b_n != n || b_k != k)) {
#pragma omp for schedule(dynamic, 1) nowait
            for (std::int64_t i = 0; i < (w.b1 - w.b0) * pieces_b(w); ++i) pack_b_rows(p, w, i);
          }
          if (pack_a && (a_m != m || a_k != k)) {
#pragma omp for schedule(dynamic, 1) nowait
            for (std::int64_t i = 0; i < (w.b1 - w.b0) * pieces_a(w); ++i) pack_a_rows(p, w, i);
          }
          b_n = n, b_k = a_k = k, a_m = m;
#pragma omp barrier
          run_wave(p, w);
        }
}

MatmulGrid::MatmulGrid(const MatmulSpec& spec) : state_(std::make_unique<State>(spec)) {}
MatmulGrid::~MatmulGrid() = default;

std::size_t MatmulGrid::scratch_bytes() const { return state_->bytes; }
const char* MatmulGrid::engine() const { return state_->engine.name; }

void MatmulGrid::run(const MatmulPointers& p, const MatmulActual& actual) {
  State& s = *state_;
  if (actual.batch == 0 || actual.m == 0 || s.spec.n == 0) return;
  if (actual.k == 0) {
    if (s.spec.bias && *s.spec.bias != DType::F32)
      widen(*s.spec.bias, p.bias, const_cast<float*>(s.bias_of(p)), s.spec.n);
    s.fill_empty(p, actual);
    return;
  }
  const std::int64_t work = actual.batch * actual.m * s.spec.n * actual.k;
  const int threads = work <= kOneThreadWork ? 1 : std::min(s.threads, omp_get_max_threads());
#pragma omp parallel num_threads(threads)
  s.run_thread(p, actual);
}

}  // namespace aloft::cpu
