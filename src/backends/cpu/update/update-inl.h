// The loops of an optimizer's kernels over one tile: each vector of values goes through the
// formula's terms once. No product and sum are fused: the same bits on every target. Include from a
// file that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_UPDATE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_UPDATE_INL
#undef ALOFT_CPU_UPDATE_INL
#else
#define ALOFT_CPU_UPDATE_INL
#endif

#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "backends/cpu/update/squares-inl.h"
#include "backends/cpu/update/update_tile.h"
#include "backends/cpu/vectors/terms-inl.h"
#include "backends/cpu/vectors/tiles.h"
#include "optim/formula.h"

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

// Streams end at pages, and the hardware's prefetchers with them: how far ahead of them all
// operands are asked for, in elements.
constexpr std::int64_t kAhead = 512;

HWY_INLINE FloatV load_ahead(Floats d, const float* p) {
  hwy::Prefetch(p + kAhead);
  return load(d, p);
}

// The operands of a formula's terms: what is the same for the whole tile is set once. States that
// no term reads are not loaded, nor fetched ahead.
template <class F, bool kReadsStates>
class Operands {
 public:
  using At = optim::Places<F>;
  static constexpr int kStates = kReadsStates ? optim::state_count<F>() : 0;

  HWY_INLINE Operands(const FloatTile& tile, const UpdateNumbers& k)
      : multiplier_(hn::Set(Floats(), k.multiplier)),
        limit_(hn::Set(Floats(), k.limit)),
        is_cut_(k.limit < std::numeric_limits<float>::infinity()),
        gradient_(tile.gradient),
        from_(tile.from) {
    each<optim::number_count<F>()>(
        [&](auto j) HWY_ATTR { terms.var[At::kNumbers + j()] = hn::Set(Floats(), k.number[j()]); });
    each<optim::tensor_number_count<F>()>(
        [&](auto j) HWY_ATTR { terms.var[At::kTensor + j()] = hn::Set(Floats(), k.tensor[j()]); });
    for (int j = 0; j < optim::flag_count<F>(); ++j) terms.flag[j] = k.flag[j];
    each<kStates>([&](auto j) HWY_ATTR { state_[j()] = tile.state[j()]; });
  }

  // Those of the vector at i.
  HWY_INLINE void load_at(std::int64_t i) {
    const Floats d;
    terms.var[At::kP] = load_ahead(d, from_ + i);
    terms.var[At::kG] = used(load_ahead(d, gradient_ + i));
    each<kStates>([&](auto j)
                      HWY_ATTR { terms.var[At::kStates + j()] = load_ahead(d, state_[j()] + i); });
  }
  // Those of the last n < Lanes(d).
  HWY_INLINE void load_last(std::int64_t i, std::int64_t n) {
    const Floats d;
    terms.var[At::kP] = load_n(d, from_ + i, n);
    terms.var[At::kG] = used(load_n(d, gradient_ + i, n));
    each<kStates>([&](auto j)
                      HWY_ATTR { terms.var[At::kStates + j()] = load_n(d, state_[j()] + i, n); });
  }

  TermValues<At::kCount, optim::flag_count<F>()> terms;

 private:
  // A gradient as it is used: unscaled, and cut. NaN stays.
  HWY_INLINE FloatV used(FloatV g) const {
    const FloatV x = hn::Mul(g, multiplier_);
    if (HWY_LIKELY(!is_cut_)) return x;
    const FloatV least = hn::Neg(limit_);
    return hn::IfThenElse(hn::Gt(x, limit_), limit_, hn::IfThenElse(hn::Lt(x, least), least, x));
  }

  FloatV multiplier_, limit_;
  bool is_cut_;
  const float *gradient_, *from_;
  const float* state_[kStates > 0 ? kStates : 1] = {};
};

template <class F>
void update_tile(const FloatTile& tile, const UpdateNumbers& k) {
  static constexpr auto results = F::step(optim::element_of_terms<F>());
  constexpr int kStates = optim::state_count<F>();
  const Floats d;
  Operands<F, true> operands(tile, k);
  float* const to = tile.to;
  float* new_state[kStates > 0 ? kStates : 1] = {};
  each<kStates>([&](auto j) HWY_ATTR { new_state[j()] = tile.new_state[j()]; });
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (const std::int64_t whole = tile.n - lanes; i <= whole; i += lanes) {
    operands.load_at(i);
    store(d, value_of(std::get<0>(results), operands.terms), to + i);
    each<kStates>([&](auto j) HWY_ATTR {
      store(d, value_of(std::get<j() + 1>(results), operands.terms), new_state[j()] + i);
    });
  }
  if (const std::int64_t n = tile.n - i; n > 0) {
    operands.load_last(i, n);
    store_n(d, value_of(std::get<0>(results), operands.terms), to + i, n);
    each<kStates>([&](auto j) HWY_ATTR {
      store_n(d, value_of(std::get<j() + 1>(results), operands.terms), new_state[j()] + i, n);
    });
  }
}

// Squares are of fp32 values.
template <class F>
void add_squares_of_tile(const FloatTile& tile, const UpdateNumbers& k, double* sums) {
  // A formula that squares its operands as they are reads their places alone.
  [[maybe_unused]] static constexpr auto results = F::squares(optim::element_of_terms<F>());
  constexpr int kSums = optim::sum_count<F>();
  const Floats d;
  Operands<F, optim::sums_read_states<F>()> operands(tile, k);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float squared[kSums][kTile];
  for (std::int64_t i = 0; i < tile.n; i += lanes) {
    if (const std::int64_t n = tile.n - i; n >= lanes)
      operands.load_at(i);
    else
      operands.load_last(i, n);
    each<kSums>([&](auto j) HWY_ATTR {
      hn::Store(value_of(std::get<j()>(results), operands.terms), d, squared[j()] + i);
    });
  }
  for (int j = 0; j < kSums; ++j) sums[j] += sum_of_squares(squared[j], tile.n);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
