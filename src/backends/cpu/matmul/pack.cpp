// Everything is a copy or a transpose of 32-bit words: a word is an f32, or two bf16 neighbours.
// A loader makes words out of the source: four at a time (`quad`) or one (`word`, at the edges).
#include "backends/cpu/matmul/pack.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/matmul/planes.h"
#include "backends/cpu/vectors/tiles.h"
#include "base/error.h"
#include "scalar/float_formats.h"

// cpu_features() refuses a processor without AVX2: a scalar version would never run.
#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_AVX2
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/pack.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using U32x4 = hn::Full128<std::uint32_t>;
using Quad = hn::Vec<U32x4>;
using Full = hn::ScalableTag<std::uint32_t>;

// D's lanes from 16-bit values: the bits of f32.
template <class D>
HWY_INLINE hn::Vec<D> widen_bf16(D du, const std::uint16_t* p) {
  return hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(hn::Rebind<std::uint16_t, D>(), p)));
}

template <class D>
HWY_INLINE hn::Vec<D> widen_f16(D du, const std::uint16_t* p) {
  const hn::RebindToFloat<D> df;
  const hn::Rebind<hwy::float16_t, hn::RebindToFloat<D>> dh;
  return hn::BitCast(du,
                     hn::PromoteTo(df, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(p))));
}

// ---- loaders ----
// `along` runs along memory; `line` counts the lines of the source, ld elements apart.

// A word is (line 2 l, line 2 l + 1) at `along`; lines at or past `lines` are zero.
struct PairsAcross {
  const std::uint16_t* p;
  std::int64_t ld, lines;
  template <class D>
  HWY_INLINE hn::Vec<D> vec(D du, std::int64_t line, std::int64_t along) const {
    const std::uint16_t* first = p + 2 * line * ld + along;
    const bool single = 2 * line + 1 >= lines;
    const auto a = hn::PromoteTo(du, hn::LoadU(hn::Rebind<std::uint16_t, D>(), first));
    return single ? a : hn::Or(a, widen_bf16(du, first + ld));
  }
  HWY_INLINE Quad quad(std::int64_t line, std::int64_t along) const {
    return vec(U32x4(), line, along);
  }
  // What the next group of lines will read, a cache line at a time.
  static constexpr std::int64_t kFetchStep = 32;
  HWY_INLINE void prefetch(std::int64_t line, std::int64_t along) const {
    hwy::Prefetch(p + 2 * (line + 16) * ld + along);
    hwy::Prefetch(p + 2 * (line + 16) * ld + ld + along);
  }
  // The same of a line 8 words on.
  HWY_INLINE void prefetch_line(std::int64_t line, std::int64_t along) const {
    hwy::Prefetch(p + 2 * (line + 8) * ld + along);
    hwy::Prefetch(p + 2 * (line + 8) * ld + ld + along);
  }
  HWY_INLINE std::uint32_t word(std::int64_t line, std::int64_t along) const {
    const std::uint16_t* first = p + 2 * line * ld + along;
    const std::uint16_t second = 2 * line + 1 < lines ? first[ld] : std::uint16_t{0};
    return std::uint32_t{*first} | std::uint32_t{second} << 16;
  }
};

// A word is (2 a, 2 a + 1) along a line; positions at or past `length` are zero.
struct PairsAlong {
  const std::uint16_t* p;
  std::int64_t ld, length;
  static constexpr std::int64_t kFetchStep = 16;
  HWY_INLINE void prefetch(std::int64_t line, std::int64_t along) const {
    hwy::Prefetch(p + line * ld + 2 * along + 128);
  }
  HWY_INLINE Quad quad(std::int64_t line, std::int64_t along) const {
    const std::uint16_t* at = p + line * ld + 2 * along;
    return hn::BitCast(U32x4(), hn::LoadU(hn::Full128<std::uint16_t>(), at));
  }
  HWY_INLINE std::uint32_t word(std::int64_t line, std::int64_t along) const {
    const std::uint16_t* at = p + line * ld + 2 * along;
    const std::uint16_t second = 2 * along + 1 < length ? at[1] : std::uint16_t{0};
    return std::uint32_t{at[0]} | std::uint32_t{second} << 16;
  }
};

// A word is the f32 of one element along a line. Of: float's bits, Bf16 or F16.
template <class Of>
struct Singles {
  const Of* p;
  std::int64_t ld;
  static constexpr std::int64_t kFetchStep = 64 / sizeof(Of);
  HWY_INLINE void prefetch(std::int64_t line, std::int64_t along) const {
    hwy::Prefetch(p + line * ld + along + 2 * kFetchStep);
  }
  HWY_INLINE void prefetch_line(std::int64_t line, std::int64_t along) const {
    hwy::Prefetch(p + (line + 16) * ld + along);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> vec(D du, std::int64_t line, std::int64_t along) const {
    const Of* at = p + line * ld + along;
    if constexpr (std::is_same_v<Of, scalar::F16>)
      return widen_f16(du, reinterpret_cast<const std::uint16_t*>(at));
    else if constexpr (std::is_same_v<Of, scalar::Bf16>)
      return widen_bf16(du, reinterpret_cast<const std::uint16_t*>(at));
    else
      return hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(at));
  }
  HWY_INLINE Quad quad(std::int64_t line, std::int64_t along) const {
    return vec(U32x4(), line, along);
  }
  HWY_INLINE std::uint32_t word(std::int64_t line, std::int64_t along) const {
    return std::bit_cast<std::uint32_t>(scalar::f32_of(p[line * ld + along]));
  }
};

// ---- transpose ----

// Block b of the result is load(first_line + 4 b).
template <class L>
HWY_INLINE hn::Vec<Full> gather_blocks(const L& load, std::int64_t line, std::int64_t along) {
  const Full du;
  if constexpr (hn::MaxLanes(Full()) == 16) {
    const hn::Half<Full> dh;
    const auto lower = hn::Combine(dh, load.quad(line + 4, along), load.quad(line, along));
    const auto upper = hn::Combine(dh, load.quad(line + 12, along), load.quad(line + 8, along));
    return hn::Combine(du, upper, lower);
  } else if constexpr (hn::MaxLanes(Full()) == 8) {
    return hn::Combine(du, load.quad(line + 4, along), load.quad(line, along));
  } else {
    return hn::BitCast(du, load.quad(line, along));
  }
}

// dst[a * ldd + l] = word(l, a) for `lines` lines and the first `whole` of `outputs` positions in
// vectors, the rest singly.
template <class L>
HWY_INLINE void transpose_words(const L& load, std::int64_t lines, std::int64_t whole,
                                std::int64_t outputs, std::uint32_t* dst, std::int64_t ldd) {
  const Full du;
  const hn::Repartition<std::uint64_t, Full> d64;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du));
  const std::int64_t vector_lines = lines / lanes * lanes, quads = whole / 4 * 4;
  // Along the lines first: what a few cache lines of each hold is used up at once.
  for (std::int64_t l = 0; l < vector_lines; l += lanes) {
    for (std::int64_t a = 0; a < quads; a += 4) {
      if (a % L::kFetchStep == 0)
        for (std::int64_t i = 0; i < lanes; ++i) load.prefetch(l + i, a);
      const auto r0 = gather_blocks(load, l, a), r1 = gather_blocks(load, l + 1, a);
      const auto r2 = gather_blocks(load, l + 2, a), r3 = gather_blocks(load, l + 3, a);
      const auto x0 = hn::BitCast(d64, hn::InterleaveLower(du, r0, r1));
      const auto x1 = hn::BitCast(d64, hn::InterleaveLower(du, r2, r3));
      const auto x2 = hn::BitCast(d64, hn::InterleaveUpper(du, r0, r1));
      const auto x3 = hn::BitCast(d64, hn::InterleaveUpper(du, r2, r3));
      std::uint32_t* to = dst + a * ldd + l;
      hn::StoreU(hn::BitCast(du, hn::InterleaveLower(d64, x0, x1)), du, to);
      hn::StoreU(hn::BitCast(du, hn::InterleaveUpper(d64, x0, x1)), du, to + ldd);
      hn::StoreU(hn::BitCast(du, hn::InterleaveLower(d64, x2, x3)), du, to + 2 * ldd);
      hn::StoreU(hn::BitCast(du, hn::InterleaveUpper(d64, x2, x3)), du, to + 3 * ldd);
    }
  }
  for (std::int64_t a = 0; a < quads; ++a)
    for (std::int64_t l = vector_lines; l < lines; ++l) dst[a * ldd + l] = load.word(l, a);
  for (std::int64_t a = quads; a < outputs; ++a)
    for (std::int64_t l = 0; l < lines; ++l) dst[a * ldd + l] = load.word(l, a);
}

// ---- bf16 ----

void dense(const MatrixView& x, std::int64_t rows, std::int64_t cols, std::uint16_t* dst,
           std::int64_t ldd) {
  const auto* src = static_cast<const std::uint16_t*>(x.data);
  if (!x.transposed) {
    // Short rows, as heads of attention have, take less time than the call to copy one.
    const Full du;
    const auto words = 2 * static_cast<std::int64_t>(hn::Lanes(du));
    const std::int64_t whole = cols <= 256 ? cols / words * words : 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::uint16_t* from = src + r * x.ld;
      std::uint16_t* to = dst + r * ldd;
      for (std::int64_t c = 0; c < whole; c += words)
        hn::StoreU(hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(from + c)), du,
                   reinterpret_cast<std::uint32_t*>(to + c));
      if (whole < cols) std::memcpy(to + whole, from + whole, (cols - whole) * 2);
    }
    return;
  }
  // Pairs of neighbouring columns are words of the result; ldd is even and cols padded to even.
  transpose_words(PairsAcross{src, x.ld, cols}, (cols + 1) / 2, rows, rows,
                  reinterpret_cast<std::uint32_t*>(dst), ldd / 2);
}

void panel_of_rows(const PairsAcross& load, std::int64_t k, std::int64_t n, std::uint32_t* dst) {
  constexpr std::int64_t kWidth = 32;
  const Full du;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du));
  for (std::int64_t pair = 0; pair < (k + 1) / 2; ++pair) {
    load.prefetch(pair - 12, 0);  // four pairs ahead
    std::int64_t j = 0;
    for (; j + lanes <= n; j += lanes)
      hn::StoreU(load.vec(du, pair, j), du, dst + pair * kWidth + j);
    for (; j < n; ++j) dst[pair * kWidth + j] = load.word(pair, j);
  }
}

void panel(const MatrixView& x, std::int64_t k, std::int64_t n, std::int64_t k_padded,
           std::uint16_t* dst) {
  const auto* src = static_cast<const std::uint16_t*>(x.data);
  auto* words = reinterpret_cast<std::uint32_t*>(dst);
  if (n < 32)
    std::memset(words, 0, k_padded / 2 * 128);
  else
    std::memset(words + (k + 1) / 2 * 32, 0, (k_padded / 2 - (k + 1) / 2) * 128);
  if (x.transposed)
    transpose_words(PairsAlong{src, x.ld, k}, n, k / 2, (k + 1) / 2, words, 32);
  else
    panel_of_rows({src, x.ld, k}, k, n, words);
}

template <class Of>
void f32_panel_of(const MatrixView& x, std::int64_t k, std::int64_t n, std::uint32_t* dst) {
  constexpr std::int64_t kWidth = 32;
  if (n < kWidth) std::memset(dst, 0, k * kWidth * sizeof(float));
  const Singles<Of> load{static_cast<const Of*>(x.data), x.ld};
  if (x.transposed) return transpose_words(load, n, k, k, dst, kWidth);
  const Full du;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du));
  for (std::int64_t i = 0; i < k; ++i, dst += kWidth) {
    hwy::Prefetch(load.p + (i + 24) * x.ld);
    hwy::Prefetch(load.p + (i + 24) * x.ld + load.kFetchStep);
    std::int64_t j = 0;
    for (; j + lanes <= n; j += lanes) hn::StoreU(load.vec(du, i, j), du, dst + j);
    for (; j < n; ++j) dst[j] = load.word(i, j);
  }
}

// A block's row of the source is one vector, whose last elements are the next block's.
template <class L>
void blocks_of(const L& load, std::int64_t rows, std::int64_t there, std::int64_t k,
               std::int64_t block, std::int64_t stride, std::uint32_t* dst) {
  const hn::CappedTag<std::uint32_t, 16> du;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du));
  for (std::int64_t i = 0; i < k; ++i, dst += stride) {
    for (std::int64_t r = 0; r < rows; r += load.kFetchStep) load.prefetch_line(i, r);
    std::uint32_t* to = dst;
    for (std::int64_t r = 0; r < rows; r += block, to += k * stride) {
      if (r + stride <= there)
        for (std::int64_t j = 0; j < stride; j += lanes)
          hn::StoreU(load.vec(du, i, r + j), du, to + j);
      else
        for (std::int64_t j = 0; r + j < rows; ++j) to[j] = load.word(i, r + j);
    }
  }
}

void blocks(const MatrixView& x, std::int64_t rows, std::int64_t there, std::int64_t k,
            std::int64_t block, std::int64_t stride, bool pairs, std::uint32_t* dst) {
  if (pairs) {
    const PairsAcross load{static_cast<const std::uint16_t*>(x.data), x.ld, k};
    return blocks_of(load, rows, there, (k + 1) / 2, block, stride, dst);
  }
  const auto of = [&]<class Of>(Of) {
    const Singles<Of> load{static_cast<const Of*>(x.data), x.ld};
    blocks_of(load, rows, there, k, block, stride, dst);
  };
  if (x.type == DType::F32)
    of(float{});
  else if (x.type == DType::BF16)
    of(scalar::Bf16{});
  else
    of(scalar::F16{});
}

void f32_panel(const MatrixView& x, std::int64_t k, std::int64_t n, float* dst) {
  auto* words = reinterpret_cast<std::uint32_t*>(dst);
  if (x.type == DType::F32)
    f32_panel_of<float>(x, k, n, words);
  else if (x.type == DType::BF16)
    f32_panel_of<scalar::Bf16>(x, k, n, words);
  else
    f32_panel_of<scalar::F16>(x, k, n, words);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {
HWY_EXPORT(blocks);
HWY_EXPORT(dense);
HWY_EXPORT(f32_panel);
HWY_EXPORT(panel);

MatrixView MatrixView::from(std::int64_t row, std::int64_t col) const {
  MatrixView view = *this;
  const std::int64_t offset = transposed ? col * ld + row : row * ld + col;
  view.data = static_cast<const char*>(data) + offset * static_cast<std::int64_t>(size_of(type));
  return view;
}

namespace {
void widen_rows(const MatrixView& x, std::int64_t rows, std::int64_t cols, std::int64_t cols_padded,
                float* dst, std::int64_t ldd) {
  for (std::int64_t r = 0; r < rows; ++r, dst += ldd) {
    widen(x.type, at(x.data, r * x.ld, x.type), dst, cols);
    std::memset(dst + cols, 0, (cols_padded - cols) * sizeof(float));
  }
}
}  // namespace

namespace {

// A block of the source as planes, from which they are packed like any bf16: its lines are split
// once, whatever becomes of each plane.
constexpr std::int64_t kBlock = 64;

struct PlanesBlock {
  alignas(64) std::uint16_t values[kMostPlanes][kBlock * kBlock];

  // `rows` x `cols` of x, at most kBlock each, kept in the source's orientation.
  void split(const MatrixView& x, std::int64_t rows, std::int64_t cols, int planes) {
    split_into_planes({x.data, x.type, x.ld, x.transposed ? cols : rows, x.transposed ? rows : cols,
                       planes, values[0], kBlock, kBlock * kBlock});
  }
  MatrixView plane(int p, bool transposed) const {
    return {values[p], DType::BF16, kBlock, transposed};
  }
};

void pad_columns(std::uint16_t* dst, std::int64_t ldd, std::int64_t rows, std::int64_t cols,
                 std::int64_t cols_padded) {
  if (cols == cols_padded) return;
  for (std::int64_t r = 0; r < rows; ++r)
    std::memset(dst + r * ldd + cols, 0, (cols_padded - cols) * 2);
}

}  // namespace

void pack_dense(const MatrixView& x, std::int64_t rows, std::int64_t cols, std::int64_t cols_padded,
                PackedType to, void* dst, std::int64_t ldd, std::int64_t plane) {
  if (to == PackedType::F32) {
    ensure(!x.transposed, "what is transposed becomes f32 in blocks or panels");
    return widen_rows(x, rows, cols, cols_padded, static_cast<float*>(dst), ldd);
  }
  auto* words = static_cast<std::uint16_t*>(dst);
  const int planes = planes_of(to);
  for (int p = 0; p < planes; ++p) pad_columns(words + p * plane, ldd, rows, cols, cols_padded);
  if (planes == 1) {
    HWY_DYNAMIC_DISPATCH(dense)(x, rows, cols, words, ldd);
    return;
  }
  if (!x.transposed) {
    split_into_planes({x.data, x.type, x.ld, rows, cols, planes, words, ldd, plane});
    return;
  }
  PlanesBlock block;
  for (std::int64_t r = 0; r < rows; r += kBlock)
    for (std::int64_t c = 0; c < cols; c += kBlock) {
      const std::int64_t block_rows = std::min(kBlock, rows - r),
                         block_cols = std::min(kBlock, cols - c);
      block.split(x.from(r, c), block_rows, block_cols, planes);
      for (int p = 0; p < planes; ++p) HWY_DYNAMIC_DISPATCH(dense)
      (block.plane(p, true), block_rows, block_cols, words + p * plane + r * ldd + c, ldd);
    }
}

void pack_panel(const MatrixView& x, std::int64_t k, std::int64_t n, std::int64_t k_padded,
                PackedType to, std::uint16_t* dst, std::int64_t plane) {
  const int planes = planes_of(to);
  if (planes == 1) {
    HWY_DYNAMIC_DISPATCH(panel)(x, k, n, k_padded, dst);
    return;
  }
  PlanesBlock block;
  for (std::int64_t first = 0; first < k_padded; first += kBlock) {
    const std::int64_t there = std::clamp<std::int64_t>(k - first, 0, kBlock);
    const std::int64_t padded = std::min(kBlock, k_padded - first);
    if (there) block.split(x.from(first, 0), there, n, planes);
    for (int p = 0; p < planes; ++p) HWY_DYNAMIC_DISPATCH(panel)
    (block.plane(p, x.transposed), there, n, padded, dst + p * plane + first * 32);
  }
}

void pack_f32_panel(const MatrixView& x, std::int64_t k, std::int64_t n, float* dst) {
  HWY_DYNAMIC_DISPATCH(f32_panel)(x, k, n, dst);
}

void pack_blocks(const MatrixView& x, std::int64_t rows, std::int64_t there, std::int64_t k,
                 std::int64_t block, std::int64_t stride, PackedType to, void* dst) {
  HWY_DYNAMIC_DISPATCH(blocks)
  (x, rows, there, k, block, stride, to != PackedType::F32, static_cast<std::uint32_t*>(dst));
}
}  // namespace aloft::cpu
#endif
