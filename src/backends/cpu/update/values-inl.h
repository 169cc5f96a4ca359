// Memory of any float type, and split masters, a vector at a time. Include from a file that Highway
// compiles once a target, after highway.h.
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

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
