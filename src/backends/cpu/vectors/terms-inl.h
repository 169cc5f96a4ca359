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

// And what a part that is bound stands for.
template <class Tag, class Outer>
struct BoundValues {
  const Outer& outer;
  FloatV bound;
};

template <class Values, int i>
HWY_INLINE FloatV value_of(scalar::Var<i>, const Values& values) {
  return values.var[i];
}
template <class Values, int i>
HWY_INLINE bool value_of(scalar::Flag<i>, const Values& values) {
  return values.flag[i];
}
template <class Tag, class Outer, int i>
HWY_INLINE FloatV value_of(scalar::Var<i> var, const BoundValues<Tag, Outer>& values) {
  return value_of(var, values.outer);
}
template <class Tag, class Outer, int i>
HWY_INLINE bool value_of(scalar::Flag<i> flag, const BoundValues<Tag, Outer>& values) {
  return value_of(flag, values.outer);
}
template <class Tag, class Outer>
HWY_INLINE FloatV value_of(scalar::Bound<Tag>, const BoundValues<Tag, Outer>& values) {
  return values.bound;
}
template <class Tag, class Other, class Outer>
HWY_INLINE FloatV value_of(scalar::Bound<Tag> part, const BoundValues<Other, Outer>& values) {
  return value_of(part, values.outer);
}
template <class Values, class Tag, class Part, class Body>
HWY_INLINE FloatV value_of(const scalar::Let<Tag, Part, Body>& let, const Values& values) {
  const BoundValues<Tag, Values> inner{values, value_of(let.part, values)};
  return value_of(let.body, inner);
}
template <class Values>
HWY_INLINE FloatV value_of(scalar::Zero, const Values&) {
  return hn::Zero(Floats());
}
template <class Values>
HWY_INLINE FloatV value_of(const scalar::Constant& c, const Values&) {
  return hn::Set(Floats(), static_cast<float>(c.value));
}

template <class Values, scalar::FormulaName kName, class Formula, class In>
HWY_INLINE FloatV value_of(const scalar::Named<kName, Formula, In>& term, const Values& values) {
  return value_of(term.formula, values);
}

// A function of term_functions-inl.h, which defines function_of(Function<op>(), vectors ...).
template <scalar::TermOp op>
struct Function {};

template <class Values, scalar::TermOp op, class A>
HWY_INLINE auto value_of(const scalar::Apply<op, A>& term, const Values& values) {
  using enum scalar::TermOp;
  const Floats d;
  const FloatV a = value_of(std::get<0>(term.in), values);
  if constexpr (op == Neg) {
    return hn::Neg(a);
  } else if constexpr (op == Abs) {
    return hn::Abs(a);
  } else if constexpr (op == Sqrt) {
    return hn::Sqrt(a);
  } else if constexpr (op == IsNan) {
    return hn::IsNaN(a);
  } else if constexpr (op == Sign) {
    const FloatV zero = hn::Zero(d), one = hn::Set(d, 1.0f);
    const FloatV below = hn::IfThenElse(hn::Lt(a, zero), hn::Neg(one), a);
    return hn::IfThenElse(hn::Gt(a, zero), one, hn::IfThenElse(hn::Eq(a, zero), zero, below));
  } else {
    return function_of(Function<op>(), a);
  }
}

template <class Values, scalar::TermOp op, class A, class B>
HWY_INLINE auto value_of(const scalar::Apply<op, A, B>& term, const Values& values) {
  using enum scalar::TermOp;
  const auto a = value_of(std::get<0>(term.in), values);
  const auto b = value_of(std::get<1>(term.in), values);
  if constexpr (op == Add) {
    return hn::Add(a, b);
  } else if constexpr (op == Sub) {
    return hn::Sub(a, b);
  } else if constexpr (op == Mul) {
    return hn::Mul(a, b);
  } else if constexpr (op == Div) {
    return hn::Div(a, b);
  } else if constexpr (op == Min) {  // x86 keeps a NaN that is the second operand
    return hn::Min(a, b);
  } else if constexpr (op == Less) {
    return hn::Lt(a, b);
  } else if constexpr (op == LessEqual) {
    return hn::Le(a, b);
  } else if constexpr (op == Greater) {
    return hn::Gt(a, b);
  } else if constexpr (op == GreaterEqual) {
    return hn::Ge(a, b);
  } else if constexpr (op == Equal) {
    return hn::Eq(a, b);
  } else if constexpr (op == NotEqual) {  // Highway's own Ne is false where either is NaN
    return hn::Not(hn::Eq(a, b));
  } else if constexpr (op == And) {
    return hn::And(a, b);
  } else if constexpr (op == Or) {
    return hn::Or(a, b);
  } else if constexpr (op == KeepNan) {
    return hn::IfThenElse(hn::IsNaN(a), a, b);
  } else {
    return function_of(Function<op>(), a, b);
  }
}

template <class Values, class A, class B, class C>
HWY_INLINE FloatV value_of(const scalar::Apply<scalar::TermOp::MulAdd, A, B, C>& term,
                           const Values& values) {
  const FloatV a = value_of(std::get<0>(term.in), values),
               b = value_of(std::get<1>(term.in), values);
  return hn::MulAdd(a, b, value_of(std::get<2>(term.in), values));
}
template <class Values, class A, class B, class C>
HWY_INLINE FloatV value_of(
    const scalar::Apply<scalar::TermOp::MulAdd, scalar::Apply<scalar::TermOp::Neg, A>, B, C>& t,
    const Values& values) {
  const FloatV a = value_of(std::get<0>(std::get<0>(t.in).in), values),
               b = value_of(std::get<1>(t.in), values);
  return hn::NegMulAdd(a, b, value_of(std::get<2>(t.in), values));
}

template <class Values, class C, class A, class B>
HWY_INLINE FloatV value_of(const scalar::Apply<scalar::TermOp::Where, C, A, B>& term,
                           const Values& values) {
  const auto& [condition, then, otherwise] = term.in;
  const auto is = value_of(condition, values);
  if constexpr (std::is_same_v<decltype(is), const bool>) {
    if (is) return value_of(then, values);
    return value_of(otherwise, values);
  } else if constexpr (std::is_same_v<A, scalar::Zero>) {
    return hn::IfThenZeroElse(is, value_of(otherwise, values));
  } else if constexpr (std::is_same_v<B, scalar::Zero>) {
    return hn::IfThenElseZero(is, value_of(then, values));
  } else {
    return hn::IfThenElse(is, value_of(then, values), value_of(otherwise, values));
  }
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
