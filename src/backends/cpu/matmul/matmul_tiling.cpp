// The numbers come from bench/matmul_bench and docs/decisions/0004-matmul-tiles.md.
#include "backends/cpu/matmul/matmul_tiling.h"

#include <algorithm>

namespace aloft::cpu {
namespace {

// Tiles that a wave should have at least, so that a few threads end together.
constexpr std::int64_t kTiles = 16;
// Below this a tile's fixed cost (waking up, one library call) shows.
constexpr std::int64_t kLeastTileWork = std::int64_t{1} << 21;  // m * n * k
// Bytes of packed operands in one wave. 6 MiB of B take all columns of a GPT-2 gradient at a depth
// of 3,072, so that A is read once.
constexpr std::int64_t kWaveB = std::int64_t{6} << 20;
constexpr std::int64_t kWaveA = std::int64_t{16} << 20;
constexpr std::int64_t kWaveGroup = std::int64_t{4} << 20;
constexpr std::int64_t kPassK = 1024;
constexpr std::int64_t kUnit = 32;  // of a tile, in m, n and k
// Rows of A that stay in a second cache of 2 MiB beside the panels (512 at a depth of 768: 2,970
// GFLOP/s against 2,660 with 1,024 rows and 2,560 with 256; 384 at a depth of 1,024, packed: 2,250
// against 2,050 with 768). In f32 A is read a quarter as fast: more of it, and B goes by once less.
constexpr std::int64_t kBandBytes = std::int64_t{1} << 20;
constexpr std::int64_t kF32BandBytes = std::int64_t{1664} << 10;
constexpr std::int64_t kPartialSums = std::int64_t{8} << 20;
// Of one band of strips, whose A is packed anew for every so many columns.
constexpr std::int64_t kBandSums = std::int64_t{32} << 20;

struct TileShape {
  std::int64_t m, n;
};

TileShape choose_tile(const MatmulExtent& e, std::int64_t depth) {
  constexpr TileShape kShapes[] = {{256, 384}, {256, 256}, {128, 256}, {128, 128},
                                   {64, 128},  {64, 64},   {32, 64}};
  TileShape chosen{};
  for (const TileShape& shape : kShapes) {
    const TileShape tile{even_part(e.m, shape.m, kUnit), even_part(e.n, shape.n, kUnit)};
    if (chosen.m && tile.m * tile.n * depth < kLeastTileWork) break;
    chosen = tile;
    if (e.batch * ceil_div(e.m, tile.m) * ceil_div(e.n, tile.n) >= kTiles) break;
  }
  return chosen;
}

// How many products of a batch share a wave, where each packs `bytes`.
std::int64_t group_of(std::int64_t batch, std::int64_t bytes) {
  const std::int64_t fit = bytes ? std::clamp<std::int64_t>(kWaveGroup / bytes, 1, batch) : batch;
  // Few products a wave would leave threads waiting at its end.
  return std::min(batch, std::max<std::int64_t>(fit, 8));
}

}  // namespace

MatmulTiling choose_strips(const MatmulExtent& e, const StripKind& kind, int threads) {
  constexpr std::int64_t kPanel = 32, kLeastBand = 64, kLeastShare = 256, kItemsAThread = 4;
  MatmulTiling t;
  // Parts of equal length would be others for another bound, where K is the batch.
  t.wave_k = kind.pass_k
                 ? std::min(kind.pass_k, round_up(std::max<std::int64_t>(e.k, 1), kind.unit_k))
                 : even_part(std::max<std::int64_t>(e.k, 1), kPassK, kind.unit_k);
  t.pass_k = t.wave_k;
  t.tn = kPanel;
  t.wave_n = round_up(e.n, kPanel);
  const std::int64_t panels = e.batch * t.wave_n / kPanel, row_bytes = kind.bytes * t.wave_k;
  const bool f32 = kind.planes == 1 && kind.bytes > 2;
  const std::int64_t band = (f32 ? kF32BandBytes : kBandBytes) / row_bytes;
  // In f32 a thread keeps to its own rows of a small A: what wrote them, and what reads C, did too.
  const std::int64_t share = kind.pass_k ? std::max(kLeastShare, ceil_div(e.m, threads)) : e.m;
  t.tm = even_part(e.m, std::clamp(share, kLeastBand, std::max(kLeastBand, band)), kind.unit_m);
  while (t.tm > kLeastBand && panels * ceil_div(e.m, t.tm) < kItemsAThread * threads)
    t.tm = even_part(e.m, t.tm / 2, kind.unit_m);
  std::int64_t rows = e.m;
  if (kind.packs_a) rows = std::min(rows, kWaveA / row_bytes);
  if (t.wave_k < e.k) {
    const std::int64_t columns = kBandSums / (4 * t.tm) / kPanel * kPanel;
    t.wave_n = std::min(t.wave_n, std::max(kPanel, columns));
    rows = std::min(rows, kPartialSums / (4 * std::max<std::int64_t>(kPanel, t.wave_n)));
  }
  t.wave_m = round_up(std::max(rows, t.tm), t.tm);
  const bool whole = t.wave_m >= e.m && t.wave_n >= e.n && t.wave_k >= e.k;
  if (e.batch > 1 && whole) t.group = group_of(e.batch, kind.packs_a ? t.wave_m * row_bytes : 0);
  return t;
}

std::int64_t rows_a_block(std::int64_t band, std::int64_t most) {
  // Shorter blocks read B too often for what they save.
  std::int64_t chosen = most;
  for (std::int64_t rows = most - 1; 3 * rows >= 2 * most; --rows)
    if (round_up(band, rows) < round_up(band, chosen)) chosen = rows;
  return chosen;
}

MatmulTiling choose_tiling(const MatmulExtent& e, const TileKind& kind) {
  MatmulTiling t;
  t.wave_k =
      e.k <= 4096 ? round_up(std::max<std::int64_t>(e.k, 1), kUnit) : even_part(e.k, 3072, 64);
  t.pass_k = t.wave_k <= kPassK ? t.wave_k : even_part(t.wave_k, kPassK, kUnit);
  const TileShape tile = choose_tile(e, t.wave_k);
  t.tm = tile.m;
  t.tn = tile.n;
  auto wave = [&](std::int64_t extent, std::int64_t part, std::int64_t most) {
    const std::int64_t parts = std::max<std::int64_t>(1, most / (part * t.wave_k * kind.bytes));
    return std::min(round_up(std::max<std::int64_t>(extent, 1), part), parts * part);
  };
  t.wave_n = wave(e.n, t.tn, kWaveB);
  t.wave_m = kind.packs_a ? wave(e.m, t.tm, kWaveA) : round_up(e.m, t.tm);
  if (t.wave_k < e.k) {
    const std::int64_t bytes_a_row = 4 * std::max(t.tn, t.wave_n);
    const std::int64_t tiles = std::max<std::int64_t>(1, kPartialSums / (bytes_a_row * t.tm));
    t.wave_m = std::min(t.wave_m, tiles * t.tm);
  }
  const bool whole = t.wave_m >= e.m && t.wave_n >= e.n && t.wave_k >= e.k;
  if (e.batch > 1 && whole) {
    const std::int64_t lines = t.wave_n + (kind.packs_a ? t.wave_m : 0);
    t.group = group_of(e.batch, lines * t.wave_k * kind.bytes);
  }
  return t;
}

}  // namespace aloft::cpu
