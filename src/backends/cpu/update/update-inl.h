// The loops of an optimizer's kernels over one run of elements: types are resolved once a run, then
// each vector of values goes through the formula's terms once. No product and sum are fused: the
// same bits on every target. Include from a file that Highway compiles once a target, after
// highway.h.
#if defined(ALOFT_CPU_UPDATE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_UPDATE_INL
#undef ALOFT_CPU_UPDATE_INL
#else
#define ALOFT_CPU_UPDATE_INL
#endif

#include <tuple>
#include <type_traits>
#include <utility>

#include "backends/cpu/update/squares-inl.h"
#include "backends/cpu/update/update_sweep.h"
#include "backends/cpu/vectors/terms-inl.h"
#include "backends/cpu/vectors/tiles.h"
#include "optim/formula.h"
#include "scalar/split_float.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// body(std::integral_constant<int, j>) for j from 0 to kCount, spelled out by the compiler.
template <int kCount, class Body>
HWY_INLINE void each(const Body& body) {
  [&]<int... j>(std::integer_sequence<int, j...>) HWY_ATTR {
    (body(std::integral_constant<int, j>()), ...);
  }
  (std::make_integer_sequence<int, kCount>());
}

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

// The operands of a formula's terms: what is the same for the whole run is set once.
template <class F>
class Operands {
 public:
  using At = optim::Places<F>;
  static constexpr int kStates = optim::state_count<F>();

  HWY_INLINE Operands(const UpdateRun& r, const UpdateNumbers& k)
      : multiplier_(hn::Set(Floats(), k.multiplier)), limit_(hn::Set(Floats(), k.limit)) {
    each<optim::number_count<F>()>([&](auto j) HWY_ATTR {
      values.var[At::kNumbers + j()] = hn::Set(Floats(), k.number[j()]);
    });
    each<optim::tensor_number_count<F>()>(
        [&](auto j) HWY_ATTR { values.var[At::kTensor + j()] = hn::Set(Floats(), k.tensor[j()]); });
    for (int j = 0; j < optim::flag_count<F>(); ++j) values.flag[j] = k.flag[j];
    each<kStates>([&](auto j) HWY_ATTR { state_[j()] = r.state[j()]; });
  }

  // Those of the vector at i, whose parameters are x.
  template <class G>
  HWY_INLINE void load_at(std::int64_t i, FloatV x, const G* gradient) {
    const Floats d;
    values.var[At::kP] = x;
    values.var[At::kG] = used(load(d, gradient + i));
    each<kStates>([&](auto j)
                      HWY_ATTR { values.var[At::kStates + j()] = load(d, state_[j()] + i); });
  }
  // Those of the last n < Lanes(d).
  template <class G>
  HWY_INLINE void load_last(std::int64_t i, std::int64_t n, FloatV x, const G* gradient) {
    const Floats d;
    values.var[At::kP] = x;
    values.var[At::kG] = used(load_n(d, gradient + i, n));
    each<kStates>([&](auto j)
                      HWY_ATTR { values.var[At::kStates + j()] = load_n(d, state_[j()] + i, n); });
  }
  HWY_INLINE void prefetch(std::int64_t i) const {
    each<kStates>([&](auto j) HWY_ATTR { hwy::Prefetch(state_[j()] + i); });
  }

  TermValues<At::kCount, optim::flag_count<F>()> values;

 private:
  // A gradient as it is used: unscaled, and cut. NaN stays.
  HWY_INLINE FloatV used(FloatV g) const {
    const FloatV x = hn::Mul(g, multiplier_), least = hn::Neg(limit_);
    return hn::IfThenElse(hn::Gt(x, limit_), limit_, hn::IfThenElse(hn::Lt(x, least), least, x));
  }

  FloatV multiplier_, limit_;
  const float* state_[kStates > 0 ? kStates : 1];
};

template <class F, class Values, class G>
void update_loop(const UpdateRun& r, const UpdateNumbers& k) {
  static constexpr auto results = F::step(optim::element_of_terms<F>());
  constexpr int kStates = optim::state_count<F>();
  const Floats d;
  const Values values(r);
  Operands<F> operands(r, k);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* gradient = static_cast<const G*>(r.gradient);
  constexpr std::int64_t kAhead = 512;  // elements
  std::int64_t i = 0;
  for (; i + lanes <= r.n; i += lanes) {
    // Streams end at pages, and the hardware's prefetchers with them.
    hwy::Prefetch(gradient + i + kAhead);
    values.prefetch(i + kAhead);
    operands.prefetch(i + kAhead);
    operands.load_at(i, values.load(d, i), gradient);
    values.store(d, value_of(std::get<0>(results), operands.values), i);
    each<kStates>([&](auto j) HWY_ATTR {
      store(d, value_of(std::get<j() + 1>(results), operands.values), r.new_state[j()] + i);
    });
  }
  if (const std::int64_t n = r.n - i; n > 0) {
    operands.load_last(i, n, values.load_n(d, i, n), gradient);
    values.store_n(d, value_of(std::get<0>(results), operands.values), i, n);
    each<kStates>([&](auto j) HWY_ATTR {
      store_n(d, value_of(std::get<j() + 1>(results), operands.values), r.new_state[j()] + i, n);
    });
  }
  if (r.streams) hwy::FlushStream();
}

// Squares are of fp32 values, tile by tile.
template <class F, class Values, class G>
void squares_loop(const UpdateRun& r, const UpdateNumbers& k, double* sums) {
  // A formula that squares its operands as they are reads their places alone.
  [[maybe_unused]] static constexpr auto terms = F::squares(optim::element_of_terms<F>());
  constexpr int kSums = optim::sum_count<F>();
  const Floats d;
  const Values values(r);
  Operands<F> operands(r, k);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* gradient = static_cast<const G*>(r.gradient);
  HWY_ALIGN float tiles[kSums][kTile];
  for (std::int64_t begin = 0; begin < r.n; begin += kTile) {
    const std::int64_t count = HWY_MIN(kTile, r.n - begin);
    for (std::int64_t i = 0; i < count; i += lanes) {
      const std::int64_t at = begin + i, n = HWY_MIN(lanes, count - i);
      if (n == lanes)
        operands.load_at(at, values.load(d, at), gradient);
      else
        operands.load_last(at, n, values.load_n(d, at, n), gradient);
      each<kSums>([&](auto j) HWY_ATTR {
        hn::Store(value_of(std::get<j()>(terms), operands.values), d, tiles[j()] + i);
      });
    }
    for (int j = 0; j < kSums; ++j) sums[j] += sum_of_squares(tiles[j], count);
  }
}

// body(values' policy, gradient's type) of a run.
template <class Body>
HWY_INLINE void for_types(const UpdateRun& r, const Body& body) {
  using scalar::Bf16;
  using scalar::F16;
  const auto with = [&](auto values) HWY_ATTR {
    if (r.gradient_type == DType::F32) return body(values, std::type_identity<float>());
    if (r.gradient_type == DType::BF16) return body(values, std::type_identity<Bf16>());
    body(values, std::type_identity<F16>());
  };
  if (r.words) return with(std::type_identity<SplitValues>());
  if (r.low && r.low_type == DType::F32) return with(std::type_identity<MasterValues<float>>());
  if (r.low && r.low_type == DType::BF16) return with(std::type_identity<MasterValues<Bf16>>());
  if (r.low) return with(std::type_identity<MasterValues<F16>>());
  if (r.value_type == DType::F32) return with(std::type_identity<OwnValues<float>>());
  if (r.value_type == DType::BF16) return with(std::type_identity<OwnValues<Bf16>>());
  with(std::type_identity<OwnValues<F16>>());
}

template <class F>
void update_run(const UpdateRun& r, const UpdateNumbers& k) {
  for_types(r, [&](auto values, auto gradient) HWY_ATTR {
    update_loop<F, typename decltype(values)::type, typename decltype(gradient)::type>(r, k);
  });
}

template <class F>
void add_squares_of_run(const UpdateRun& r, const UpdateNumbers& k, double* sums) {
  for_types(r, [&](auto values, auto gradient) HWY_ATTR {
    squares_loop<F, typename decltype(values)::type, typename decltype(gradient)::type>(r, k, sums);
  });
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
