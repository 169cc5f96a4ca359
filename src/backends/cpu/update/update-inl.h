// The loops of an optimizer's kernels over one tile: each vector of values goes through the
// formula's terms once. No product and sum are fused: the same bits on every target. Include from a
// file that Highway compiles once a target, after highway.h.
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

// The operands of a formula's terms: what is the same for the whole tile is set once.
template <class F>
class Operands {
 public:
  using At = optim::Places<F>;
  static constexpr int kStates = optim::state_count<F>();

  HWY_INLINE Operands(const UpdateTile& tile, const UpdateNumbers& k)
      : multiplier_(hn::Set(Floats(), k.multiplier)),
        limit_(hn::Set(Floats(), k.limit)),
        from_(tile.from),
        gradient_(tile.gradient) {
    each<optim::number_count<F>()>([&](auto j) HWY_ATTR {
      values.var[At::kNumbers + j()] = hn::Set(Floats(), k.number[j()]);
    });
    each<optim::tensor_number_count<F>()>(
        [&](auto j) HWY_ATTR { values.var[At::kTensor + j()] = hn::Set(Floats(), k.tensor[j()]); });
    for (int j = 0; j < optim::flag_count<F>(); ++j) values.flag[j] = k.flag[j];
    each<kStates>([&](auto j) HWY_ATTR { state_[j()] = tile.state[j()]; });
  }

  // Those of the vector at i, and what lies ahead of them to be fetched: streams end at pages, and
  // the hardware's prefetchers with them.
  HWY_INLINE void load_at(std::int64_t i) {
    load_by(i, [](const float* p) HWY_ATTR {
      constexpr std::int64_t kAhead = 512;  // elements
      hwy::Prefetch(p + kAhead);
      return load(Floats(), p);
    });
  }
  // Those of the last n < Lanes(d).
  HWY_INLINE void load_last(std::int64_t i, std::int64_t n) {
    load_by(i, [n](const float* p) HWY_ATTR { return load_n(Floats(), p, n); });
  }

  TermValues<At::kCount, optim::flag_count<F>()> values;

 private:
  template <class Load>
  HWY_INLINE void load_by(std::int64_t i, const Load& load) {
    values.var[At::kP] = load(from_ + i);
    values.var[At::kG] = used(load(gradient_ + i));
    each<kStates>([&](auto j) HWY_ATTR { values.var[At::kStates + j()] = load(state_[j()] + i); });
  }
  // A gradient as it is used: unscaled, and cut. NaN stays.
  HWY_INLINE FloatV used(FloatV g) const {
    const FloatV x = hn::Mul(g, multiplier_), least = hn::Neg(limit_);
    return hn::IfThenElse(hn::Gt(x, limit_), limit_, hn::IfThenElse(hn::Lt(x, least), least, x));
  }

  FloatV multiplier_, limit_;
  const float *from_, *gradient_;
  const float* state_[kStates > 0 ? kStates : 1];
};

template <class F>
void update_tile(const UpdateTile& tile, const UpdateNumbers& k) {
  static constexpr auto results = F::step(optim::element_of_terms<F>());
  constexpr int kStates = optim::state_count<F>();
  const Floats d;
  Operands<F> operands(tile, k);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= tile.n; i += lanes) {
    operands.load_at(i);
    store(d, value_of(std::get<0>(results), operands.values), tile.to + i);
    each<kStates>([&](auto j) HWY_ATTR {
      store(d, value_of(std::get<j() + 1>(results), operands.values), tile.new_state[j()] + i);
    });
  }
  if (const std::int64_t n = tile.n - i; n > 0) {
    operands.load_last(i, n);
    store_n(d, value_of(std::get<0>(results), operands.values), tile.to + i, n);
    each<kStates>([&](auto j) HWY_ATTR {
      store_n(d, value_of(std::get<j() + 1>(results), operands.values), tile.new_state[j()] + i, n);
    });
  }
}

// Squares are of fp32 values. At most kTile elements.
template <class F>
void add_squares_of_tile(const UpdateTile& tile, const UpdateNumbers& k, double* sums) {
  // A formula that squares its operands as they are reads their places alone.
  [[maybe_unused]] static constexpr auto terms = F::squares(optim::element_of_terms<F>());
  constexpr int kSums = optim::sum_count<F>();
  const Floats d;
  Operands<F> operands(tile, k);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float squared[kSums][kTile];
  for (std::int64_t i = 0; i < tile.n; i += lanes) {
    if (const std::int64_t n = tile.n - i; n >= lanes)
      operands.load_at(i);
    else
      operands.load_last(i, n);
    each<kSums>([&](auto j) HWY_ATTR {
      hn::Store(value_of(std::get<j()>(terms), operands.values), d, squared[j()] + i);
    });
  }
  for (int j = 0; j < kSums; ++j) sums[j] += sum_of_squares(squared[j], tile.n);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
