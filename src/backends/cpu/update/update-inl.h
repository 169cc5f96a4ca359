// The loop of an optimizer's kernel over one run of elements: types are resolved once a run, then
// each vector of values goes through the optimizer's step once. Include from a file that Highway
// compiles once a target, after highway.h.
#if defined(ALOFT_CPU_UPDATE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_UPDATE_INL
#undef ALOFT_CPU_UPDATE_INL
#else
#define ALOFT_CPU_UPDATE_INL
#endif

#include <type_traits>

#include "backends/cpu/update/update_sweep.h"
#include "backends/cpu/vectors/vectors-inl.h"
#include "scalar/split_float.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// How the values of a run are kept: each policy loads a vector (or n elements) from position i on,
// and stores the new ones. The last `n` elements of a run go through load_n and store_n.
template <class V>
class OwnValues {
 public:
  explicit OwnValues(const UpdateRun& r)
      : from_(static_cast<const V*>(r.from)), to_(static_cast<V*>(r.to)) {}
  FloatV load(Floats d, std::int64_t i) const { return HWY_NAMESPACE::load(d, from_ + i); }
  FloatV load_n(Floats d, std::int64_t i, std::int64_t n) const {
    return HWY_NAMESPACE::load_n(d, from_ + i, n);
  }
  void store(Floats d, FloatV x, std::int64_t i) const { HWY_NAMESPACE::store(d, x, to_ + i); }
  void store_n(Floats d, FloatV x, std::int64_t i, std::int64_t n) const {
    HWY_NAMESPACE::store_n(d, x, to_ + i, n);
  }
  void prefetch(std::int64_t i) const { hwy::Prefetch(from_ + i); }

 private:
  const V* from_;
  V* to_;
};

// fp32 masters, and the rounded copy that the next step computes with. The copy is the one stream
// that is written and never read here: past the caches, where there is more of it than they hold.
template <class L>
class MasterValues : public OwnValues<float> {
 public:
  explicit MasterValues(const UpdateRun& r)
      : OwnValues(r),
        low_(static_cast<L*>(r.low)),
        streams_(r.streams && reinterpret_cast<std::uintptr_t>(r.low) % 64 == 0) {}
  void store(Floats d, FloatV x, std::int64_t i) const {
    OwnValues::store(d, x, i);
    if (streams_)
      stream(d, x, low_ + i);
    else
      HWY_NAMESPACE::store(d, x, low_ + i);
  }
  void store_n(Floats d, FloatV x, std::int64_t i, std::int64_t n) const {
    OwnValues::store_n(d, x, i, n);
    HWY_NAMESPACE::store_n(d, x, low_ + i, n);
  }

 private:
  L* low_;
  bool streams_;
};

// bf16 parameters whose masters are they and their remainders: scalar::split and scalar::join.
// Midpoints, the only values whose bit counts, are one in 65,536: their bits are read only there.
class SplitValues {
 public:
  explicit SplitValues(const UpdateRun& r)
      : from_(static_cast<const scalar::Bf16*>(r.from)),
        to_(static_cast<scalar::Bf16*>(r.to)),
        old_{r.words, r.bits},
        new_{r.new_words, r.new_bits} {}

  FloatV load(Floats d, std::int64_t i) const {
    const hn::RebindToUnsigned<Floats> d32;
    const hn::Rebind<std::uint16_t, Floats> u16;
    const hn::Rebind<std::int16_t, Floats> i16;
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
  void store(Floats d, FloatV x, std::int64_t i) const {
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
  void prefetch(std::int64_t i) const {
    hwy::Prefetch(from_ + i);
    hwy::Prefetch(old_.words + i);
  }

 private:
  const scalar::Bf16* from_;
  scalar::Bf16* to_;
  scalar::ConstRests old_;
  scalar::Rests new_;
};

// step(value, gradient, m0, m1) changes value, m0 and m1; the gradient is already multiplied.
template <int kMoments, class Values, class G, class Step>
HWY_INLINE void update_loop(const UpdateRun& r, float multiplier, const Step& step) {
  const Floats d;
  const Values values(r);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* gradient = static_cast<const G*>(r.gradient);
  const FloatV factor = hn::Set(d, multiplier);
  constexpr std::int64_t kAhead = 512;  // elements
  std::int64_t i = 0;
  for (; i + lanes <= r.n; i += lanes) {
    // Streams end at pages, and the hardware's prefetchers with them.
    hwy::Prefetch(gradient + i + kAhead);
    values.prefetch(i + kAhead);
    if constexpr (kMoments > 0) hwy::Prefetch(r.moment[0] + i + kAhead);
    if constexpr (kMoments > 1) hwy::Prefetch(r.moment[1] + i + kAhead);
    FloatV x = values.load(d, i), m0 = hn::Zero(d), m1 = hn::Zero(d);
    if constexpr (kMoments > 0) m0 = load(d, r.moment[0] + i);
    if constexpr (kMoments > 1) m1 = load(d, r.moment[1] + i);
    step(x, hn::Mul(load(d, gradient + i), factor), m0, m1);
    values.store(d, x, i);
    if constexpr (kMoments > 0) store(d, m0, r.new_moment[0] + i);
    if constexpr (kMoments > 1) store(d, m1, r.new_moment[1] + i);
  }
  if (const std::int64_t n = r.n - i; n > 0) {
    FloatV x = values.load_n(d, i, n), m0 = hn::Zero(d), m1 = hn::Zero(d);
    if constexpr (kMoments > 0) m0 = load_n(d, r.moment[0] + i, n);
    if constexpr (kMoments > 1) m1 = load_n(d, r.moment[1] + i, n);
    step(x, hn::Mul(load_n(d, gradient + i, n), factor), m0, m1);
    values.store_n(d, x, i, n);
    if constexpr (kMoments > 0) store_n(d, m0, r.new_moment[0] + i, n);
    if constexpr (kMoments > 1) store_n(d, m1, r.new_moment[1] + i, n);
  }
  if (r.streams) hwy::FlushStream();
}

template <int kMoments, class Values, class Step>
void update_for_gradient(const UpdateRun& r, float multiplier, const Step& step) {
  using scalar::Bf16;
  using scalar::F16;
  if (r.gradient_type == DType::F32)
    return update_loop<kMoments, Values, float>(r, multiplier, step);
  if (r.gradient_type == DType::BF16)
    return update_loop<kMoments, Values, Bf16>(r, multiplier, step);
  update_loop<kMoments, Values, F16>(r, multiplier, step);
}

template <int kMoments, class Step>
void update_run(const UpdateRun& r, float multiplier, const Step& step) {
  using scalar::Bf16;
  using scalar::F16;
  const auto run = [&](auto values) {
    update_for_gradient<kMoments, typename decltype(values)::type>(r, multiplier, step);
  };
  if (r.words) return run(std::type_identity<SplitValues>());
  if (r.low && r.low_type == DType::F32) return run(std::type_identity<MasterValues<float>>());
  if (r.low && r.low_type == DType::BF16) return run(std::type_identity<MasterValues<Bf16>>());
  if (r.low) return run(std::type_identity<MasterValues<F16>>());
  if (r.value_type == DType::F32) return run(std::type_identity<OwnValues<float>>());
  if (r.value_type == DType::BF16) return run(std::type_identity<OwnValues<Bf16>>());
  run(std::type_identity<OwnValues<F16>>());
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
