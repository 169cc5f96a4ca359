// Walks terms (scalar/terms.h) in vectors: a formula that is written once becomes the code of a
// kernel. Include from a file that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_TERMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_TERMS_INL
#undef ALOFT_CPU_TERMS_INL
#else
#define ALOFT_CPU_TERMS_INL
#endif

#include "backends/cpu/vectors/vectors-inl.h"
#include "scalar/terms.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// What a term's operands and flags stand for.
template <int kVars, int kFlags = 0>
struct TermValues {
  FloatV var[kVars > 0 ? kVars : 1];
  bool flag[kFlags > 0 ? kFlags : 1] = {};
};

template <class Values, int i>
HWY_INLINE FloatV value_of(scalar::Var<i>, const Values& values) {
  return values.var[i];
}
template <class Values, int i>
HWY_INLINE bool value_of(scalar::Flag<i>, const Values& values) {
  return values.flag[i];
}
template <class Values>
HWY_INLINE FloatV value_of(const scalar::Constant& c, const Values&) {
  return hn::Set(Floats(), static_cast<float>(c.value));
}

template <class Values, scalar::TermOp op, class A>
HWY_INLINE FloatV value_of(const scalar::Apply<op, A>& term, const Values& values) {
  using enum scalar::TermOp;
  const Floats d;
  const FloatV a = value_of(std::get<0>(term.in), values);
  if constexpr (op == Neg) return hn::Neg(a);
  if constexpr (op == Abs) return hn::Abs(a);
  if constexpr (op == Sqrt) return hn::Sqrt(a);
  if constexpr (op == Sign) {
    const FloatV zero = hn::Zero(d), one = hn::Set(d, 1.0f);
    const FloatV below = hn::IfThenElse(hn::Lt(a, zero), hn::Neg(one), a);
    return hn::IfThenElse(hn::Gt(a, zero), one, hn::IfThenElse(hn::Eq(a, zero), zero, below));
  }
}

template <class Values, scalar::TermOp op, class A, class B>
HWY_INLINE auto value_of(const scalar::Apply<op, A, B>& term, const Values& values) {
  using enum scalar::TermOp;
  const FloatV a = value_of(std::get<0>(term.in), values),
               b = value_of(std::get<1>(term.in), values);
  if constexpr (op == Add) return hn::Add(a, b);
  if constexpr (op == Sub) return hn::Sub(a, b);
  if constexpr (op == Mul) return hn::Mul(a, b);
  if constexpr (op == Div) return hn::Div(a, b);
  if constexpr (op == Less) return hn::Lt(a, b);
  if constexpr (op == Greater) return hn::Gt(a, b);
}

template <class Values, class C, class A, class B>
HWY_INLINE FloatV value_of(const scalar::Apply<scalar::TermOp::Where, C, A, B>& term,
                           const Values& values) {
  const auto& [condition, then, otherwise] = term.in;
  const auto is = value_of(condition, values);
  if constexpr (std::is_same_v<decltype(is), const bool>) {
    if (is) return value_of(then, values);
    return value_of(otherwise, values);
  } else {
    return hn::IfThenElse(is, value_of(then, values), value_of(otherwise, values));
  }
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
