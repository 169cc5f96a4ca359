// How an optimizer's kernels read and write values and gradients of any type, a vector at a time.
// Which type it is costs a branch a vector that always goes the same way, and the loops are
// compiled once. Include from a file that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_VALUES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_VALUES_INL
#undef ALOFT_CPU_VALUES_INL
#else
#define ALOFT_CPU_VALUES_INL
#endif

#include <cstdint>

#include "backends/cpu/update/update_tile.h"
#include "backends/cpu/vectors/vectors-inl.h"
#include "scalar/block_float.h"
#include "scalar/split_float.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// body(pointer) for memory that holds this type.
template <class P, class Body>
HWY_INLINE auto with_type(DType type, P* p, const Body& body) {
  using scalar::Bf16;
  using scalar::F16;
  constexpr bool kConst = std::is_const_v<P>;
  if (HWY_LIKELY(type == DType::F32))
    return body(static_cast<std::conditional_t<kConst, const float*, float*>>(p));
  if (HWY_LIKELY(type == DType::BF16))
    return body(static_cast<std::conditional_t<kConst, const Bf16*, Bf16*>>(p));
  return body(static_cast<std::conditional_t<kConst, const F16*, F16*>>(p));
}

// Values of one type; all but the last n < Lanes(d) elements are read a vector at a time.
class TypedReader {
 public:
  TypedReader() = default;
  TypedReader(const void* p, DType type) : p_(p), type_(type) {}
  HWY_INLINE FloatV load(Floats d, std::int64_t i) const {
    return with_type(type_, p_, [&](auto* p) HWY_ATTR {
      // Streams end at pages, and the hardware's prefetchers with them.
      constexpr std::int64_t kAhead = 512;  // elements
      hwy::Prefetch(p + i + kAhead);
      return HWY_NAMESPACE::load(d, p + i);
    });
  }
  HWY_INLINE FloatV load_n(Floats d, std::int64_t i, std::int64_t n) const {
    return with_type(type_, p_,
                     [&](auto* p) HWY_ATTR { return HWY_NAMESPACE::load_n(d, p + i, n); });
  }

 private:
  const void* p_ = nullptr;
  DType type_ = DType::F32;
};

// A state as it is kept: of a float type, or in blocks of codes.
class StateReader {
 public:
  StateReader() = default;
  StateReader(const UpdateTile& t, int which)
      : plain_(t.state[which], t.state_type),
        codes_(static_cast<const std::uint8_t*>(t.state[which])),
        scales_(t.scales[which]),
        form_(t.form[which]),
        most_(hn::Set(Words(), form_.most())),
        sign_(hn::Set(Words(), form_.is_signed ? 0x80u : 0u)),
        offset_(hn::Set(Words(), form_.offset())),
        step_(hn::Set(Floats(), 1 / form_.subnormal_codes())) {}

  HWY_INLINE FloatV load(Floats d, std::int64_t i) const {
    if (HWY_LIKELY(!scales_)) return plain_.load(d, i);
    constexpr std::int64_t kAhead = 1024;  // elements, a byte each
    hwy::Prefetch(codes_ + i + kAhead);
    return hn::Mul(sizes_at(i), hn::Set(d, scales_[i / scalar::kBlock]));
  }
  HWY_INLINE FloatV load_n(Floats d, std::int64_t i, std::int64_t n) const {
    if (!scales_) return plain_.load_n(d, i, n);
    HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)] = {};
    for (std::int64_t k = 0; k < n; ++k)
      lanes[k] = scalar::block_value(codes_[i + k], scales_[(i + k) / scalar::kBlock], form_);
    return hn::Load(d, lanes);
  }

 private:
  using Words = hn::RebindToUnsigned<Floats>;
  using WordV = hn::Vec<Words>;

  // Values of a vector of codes, in units of their block's scale.
  HWY_INLINE FloatV sizes_at(std::int64_t i) const {
    const Floats d;
    const Words d32;
    const WordV code =
        hn::PromoteTo(d32, hn::LoadU(hn::Rebind<std::uint8_t, Floats>(), codes_ + i));
    const WordV size = hn::And(code, most_);
    WordV bits = hn::ShiftLeft<20>(hn::Add(size, offset_));
    const auto is_small = hn::Lt(size, hn::Set(d32, 8u));
    if (HWY_UNLIKELY(!hn::AllFalse(d32, is_small))) {
      const FloatV count = hn::ConvertTo(d, hn::BitCast(hn::RebindToSigned<Floats>(), size));
      bits = hn::IfThenElse(is_small, hn::BitCast(d32, hn::Mul(count, step_)), bits);
    }
    return hn::BitCast(d, hn::Or(bits, hn::ShiftLeft<24>(hn::And(code, sign_))));
  }

  TypedReader plain_;
  const std::uint8_t* codes_ = nullptr;
  const float* scales_ = nullptr;
  scalar::BlockForm form_ = {};
  WordV most_, sign_, offset_;
  FloatV step_;
};

// bf16 parameters whose masters are they and their remainders: scalar::split and scalar::join.
// Midpoints, the only values whose bit counts, are one in 65,536: their bits are read only there.
class SplitValues {
 public:
  explicit SplitValues(const UpdateTile& t)
      : from_(static_cast<const scalar::Bf16*>(t.from)),
        to_(static_cast<scalar::Bf16*>(t.to)),
        old_{t.words, t.bits},
        new_{t.new_words, t.new_bits} {}

  HWY_INLINE FloatV load(Floats d, std::int64_t i) const {
    const hn::RebindToUnsigned<Floats> d32;
    const hn::Rebind<std::uint16_t, Floats> u16;
    const hn::Rebind<std::int16_t, Floats> i16;
    constexpr std::int64_t kAhead = 512;  // elements
    hwy::Prefetch(from_ + i + kAhead);
    hwy::Prefetch(old_.words + i + kAhead);
    const auto near = hn::LoadU(u16, reinterpret_cast<const std::uint16_t*>(from_ + i));
    const auto rest = hn::BitCast(i16, hn::LoadU(u16, old_.words + i));
    const auto wide = hn::BitCast(d32, hn::PromoteTo(hn::RebindToSigned<Floats>(), rest));
    const auto u = hn::Add(hn::ShiftLeft<16>(hn::PromoteTo(d32, near)), wide);
    if (HWY_UNLIKELY(!hn::AllFalse(d32, hn::Eq(wide, hn::Set(d32, 0xffff8000u)))))
      return load_n(d, i, static_cast<std::int64_t>(hn::Lanes(d)));
    return hn::BitCast(d, u);
  }
  FloatV load_n(Floats d, std::int64_t i, std::int64_t n) const {
    HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)] = {};
    for (std::int64_t k = 0; k < n; ++k) lanes[k] = scalar::joined(old_, from_[i + k], i + k);
    return hn::Load(d, lanes);
  }
  HWY_INLINE void store(Floats d, FloatV x, std::int64_t i) const {
    const hn::RebindToUnsigned<Floats> d32;
    const hn::Rebind<std::uint16_t, Floats> u16;
    HWY_NAMESPACE::store(d, x, to_ + i);
    const auto u = hn::BitCast(d32, x);
    const auto whole = hn::And(u, hn::Set(d32, 0xffffu));
    const auto rest = hn::IfThenZeroElse(hn::RebindMask(d32, hn::IsNaN(x)), whole);
    hn::StoreU(hn::TruncateTo(u16, rest), u16, new_.words + i);
    const auto is_tie = hn::Eq(rest, hn::Set(d32, std::uint32_t{scalar::kTieRest}));
    // Rounded down: the upper half was even.
    const auto is_even = hn::Eq(hn::And(u, hn::Set(d32, 0x10000u)), hn::Zero(d32));
    const auto below = hn::And(is_tie, is_even);
    if (hn::Lanes(d) >= 8) {
      hn::StoreMaskBits(d32, below, new_.bits + i / 8);
      return;
    }
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(d32, below, bits);
    const auto all = static_cast<unsigned>((1u << hn::Lanes(d)) - 1) << (i % 8);
    std::uint8_t& byte = new_.bits[i / 8];
    byte = static_cast<std::uint8_t>((byte & ~all) | (unsigned{bits[0]} << (i % 8) & all));
  }
  void store_n(Floats d, FloatV x, std::int64_t i, std::int64_t n) const {
    HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(x, d, lanes);
    for (std::int64_t k = 0; k < n; ++k) to_[i + k] = scalar::put_split(new_, i + k, lanes[k]);
    if ((i + n) % 8 != 0)
      new_.bits[(i + n) / 8] &= static_cast<std::uint8_t>((1u << ((i + n) % 8)) - 1);
  }

 private:
  const scalar::Bf16* from_;
  scalar::Bf16* to_;
  scalar::ConstRests old_;
  scalar::Rests new_;
};

// The values of a tile, however they are kept. Copies beside masters are the one stream that is
// written and never read here: past the caches, where there is more of it than they hold.
class Values {
 public:
  explicit Values(const UpdateTile& t)
      : plain_(t.from, t.from_type),
        split_(t),
        to_(t.to),
        low_(t.low),
        to_type_(t.to_type),
        low_type_(t.low_type),
        is_split_(t.words != nullptr),
        streams_(t.streams && reinterpret_cast<std::uintptr_t>(t.low) % 64 == 0) {}

  HWY_INLINE FloatV load(Floats d, std::int64_t i) const {
    return HWY_UNLIKELY(is_split_) ? split_.load(d, i) : plain_.load(d, i);
  }
  HWY_INLINE FloatV load_n(Floats d, std::int64_t i, std::int64_t n) const {
    return is_split_ ? split_.load_n(d, i, n) : plain_.load_n(d, i, n);
  }
  HWY_INLINE void store(Floats d, FloatV x, std::int64_t i) const {
    if (HWY_UNLIKELY(is_split_)) return split_.store(d, x, i);
    with_type(to_type_, to_, [&](auto* to) HWY_ATTR { HWY_NAMESPACE::store(d, x, to + i); });
    if (!low_) return;
    with_type(low_type_, low_, [&](auto* low) HWY_ATTR {
      if (streams_)
        stream(d, x, low + i);
      else
        HWY_NAMESPACE::store(d, x, low + i);
    });
  }
  HWY_INLINE void store_n(Floats d, FloatV x, std::int64_t i, std::int64_t n) const {
    if (is_split_) return split_.store_n(d, x, i, n);
    const auto put = [&](auto* to) HWY_ATTR { HWY_NAMESPACE::store_n(d, x, to + i, n); };
    with_type(to_type_, to_, put);
    if (low_) with_type(low_type_, low_, put);
  }

 private:
  TypedReader plain_;
  SplitValues split_;
  void *to_, *low_;
  DType to_type_, low_type_;
  bool is_split_, streams_;
};

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
