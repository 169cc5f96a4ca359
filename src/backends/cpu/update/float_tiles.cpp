#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/update/float_tiles.cpp"
#include "backends/cpu/update/float_tiles.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/update/values-inl.h"
#include "backends/cpu/vectors/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// body(i) for each whole vector of n elements, then last(i, n) for what is left.
template <class Body, class Last>
HWY_INLINE void for_vectors(std::int64_t n, const Body& body, const Last& last) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  std::int64_t i = 0;
  for (const std::int64_t whole = n - lanes; i <= whole; i += lanes) body(i);
  if (i < n) last(i, n - i);
}

// A line of memory at a time is asked for, this many elements before it is read: streams end at
// pages, and the hardware's prefetchers with them.
constexpr std::int64_t kAhead = 1024;

template <class T>
void widen_ahead(const T* from, float* to, std::int64_t n) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::int64_t kLine = 64 / sizeof(T);
  std::int64_t i = 0;
  for (; i + kLine <= n; i += kLine) {
    hwy::Prefetch(from + i + kAhead);
#pragma GCC unroll 16
    for (std::int64_t k = 0; k < kLine; k += lanes)
      hn::StoreU(load(d, from + i + k), d, to + i + k);
  }
  for (; i + lanes <= n; i += lanes) hn::StoreU(load(d, from + i), d, to + i);
  for (; i < n; ++i) to[i] = scalar::f32_of(from[i]);
}

void read_typed(DType type, const void* from, float* to, std::int64_t n) {
  with_type(type, from, [&](auto* p) HWY_ATTR { widen_ahead(p, to, n); });
}

void read_split(const UpdateTile& tile, float* to) {
  const Floats d;
  const SplitValues values(tile);
  for_vectors(
      tile.n, [&](std::int64_t i) HWY_ATTR { hn::StoreU(values.load(d, i), d, to + i); },
      [&](std::int64_t i, std::int64_t n)
          HWY_ATTR { store_n(d, values.load_n(d, i, n), to + i, n); });
}

// Codes of a block in units of its scale.
template <bool kSigned>
HWY_INLINE FloatV sizes_of(const std::uint8_t* codes) {
  constexpr scalar::BlockForm kForm{kSigned};
  const Floats d;
  const hn::RebindToUnsigned<Floats> d32;
  const auto code = hn::PromoteTo(d32, hn::LoadU(hn::Rebind<std::uint8_t, Floats>(), codes));
  const auto size = kSigned ? hn::And(code, hn::Set(d32, kForm.most())) : code;
  auto bits = hn::ShiftLeft<20>(hn::Add(size, hn::Set(d32, kForm.offset())));
  const auto is_small = hn::Lt(size, hn::Set(d32, 8u));
  if (HWY_UNLIKELY(!hn::AllFalse(d32, is_small))) {
    const FloatV count = hn::ConvertTo(d, hn::BitCast(hn::RebindToSigned<Floats>(), size));
    const FloatV small = hn::Mul(count, hn::Set(d, 1 / kForm.subnormal_codes()));
    bits = hn::IfThenElse(is_small, hn::BitCast(d32, small), bits);
  }
  if (kSigned) bits = hn::Or(bits, hn::ShiftLeft<24>(hn::AndNot(hn::Set(d32, 0x7fu), code)));
  return hn::BitCast(d, bits);
}

template <bool kSigned>
void read_blocks(const std::uint8_t* codes, const float* scales, float* to, std::int64_t count) {
  const Floats d;
  for (std::int64_t begin = 0; begin < count; begin += scalar::kBlock) {
    const float scale = scales[begin / scalar::kBlock];
    const FloatV unit = hn::Set(d, scale);
    for (std::int64_t line = 0; line < scalar::kBlock; line += 64)
      hwy::Prefetch(codes + begin + line + kAhead);
    for_vectors(
        std::min(count - begin, scalar::kBlock),
        [&](std::int64_t i) HWY_ATTR {
          hn::StoreU(hn::Mul(sizes_of<kSigned>(codes + begin + i), unit), d, to + begin + i);
        },
        [&](std::int64_t i, std::int64_t n) {
          for (std::int64_t k = begin + i; k < begin + i + n; ++k)
            to[k] = scalar::block_value(codes[k], scale, {kSigned});
        });
  }
}

void read_state_of(const UpdateTile& tile, int which, float* to) {
  if (!tile.scales[which]) return read_typed(tile.state_type, tile.state[which], to, tile.n);
  const auto* codes = static_cast<const std::uint8_t*>(tile.state[which]);
  if (tile.form[which].is_signed)
    read_blocks<true>(codes, tile.scales[which], to, tile.n);
  else
    read_blocks<false>(codes, tile.scales[which], to, tile.n);
}

void write_split(const UpdateTile& tile, const float* from) {
  const Floats d;
  const SplitValues values(tile);
  for_vectors(
      tile.n, [&](std::int64_t i) HWY_ATTR { values.store(d, hn::LoadU(d, from + i), i); },
      [&](std::int64_t i, std::int64_t n)
          HWY_ATTR { values.store_n(d, load_n(d, from + i, n), i, n); });
}

// put(a, b, at) for each two vectors.
template <class T, class Put>
HWY_INLINE void write_by_two(const float* from, T* to, std::int64_t n, const Put& put) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (const std::int64_t whole = n - 2 * lanes; i <= whole; i += 2 * lanes)
    put(hn::LoadU(d, from + i), hn::LoadU(d, from + i + lanes), to + i);
  for (; i < n; ++i) to[i] = scalar::round_to<T>(from[i]);
}

void write_typed(const float* from, DType type, void* to, std::int64_t n) {
  with_type(type, to, [&](auto* p) HWY_ATTR {
    write_by_two(from, p, n,
                 [](FloatV a, FloatV b, auto* at) HWY_ATTR { store_two(Floats(), a, b, at); });
  });
}

// Past the caches: the one stream that is written and never read here.
void stream_low(const float* from, DType type, void* to, std::int64_t n) {
  with_type(type, to, [&](auto* p) HWY_ATTR {
    write_by_two(from, p, n,
                 [](FloatV a, FloatV b, auto* at) HWY_ATTR { stream_two(Floats(), a, b, at); });
  });
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(read_typed);
HWY_EXPORT(read_split);
HWY_EXPORT(read_state_of);
HWY_EXPORT(write_split);
HWY_EXPORT(write_typed);
HWY_EXPORT(stream_low);

void read_gradient(const UpdateTile& tile, float* to) {
  HWY_DYNAMIC_DISPATCH(read_typed)(tile.gradient_type, tile.gradient, to, tile.n);
}

void read_values(const UpdateTile& tile, float* to) {
  if (tile.words)
    HWY_DYNAMIC_DISPATCH(read_split)(tile, to);
  else
    HWY_DYNAMIC_DISPATCH(read_typed)(tile.from_type, tile.from, to, tile.n);
}

void read_state(const UpdateTile& tile, int which, float* to) {
  HWY_DYNAMIC_DISPATCH(read_state_of)(tile, which, to);
}

void write_values(const UpdateTile& tile, const float* values) {
  if (tile.new_words)
    HWY_DYNAMIC_DISPATCH(write_split)(tile, values);
  else
    HWY_DYNAMIC_DISPATCH(write_typed)(values, tile.to_type, tile.to, tile.n);
}

void write_low(const UpdateTile& tile, const float* values) {
  if (tile.streams && reinterpret_cast<std::uintptr_t>(tile.low) % 64 == 0)
    HWY_DYNAMIC_DISPATCH(stream_low)(values, tile.low_type, tile.low, tile.n);
  else
    HWY_DYNAMIC_DISPATCH(write_typed)(values, tile.low_type, tile.low, tile.n);
}

}  // namespace aloft::cpu
#endif
