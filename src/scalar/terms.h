// Formulas that stand once. A formula is a generic function over its number type, made of the
// operators and functions below:
//
//   template <class N>
//   constexpr auto softsign(N x) { return x / (number<N>(1) + abs(x)); }
//
// Called with floats or doubles it gives its value: the meaning. Called with Var<0> it gives a
// term, a tree whose type is the formula: a back end walks it in its own vectors, each at its own
// width (backends/cpu/vectors/terms-inl.h), and text_of() prints it (scalar/term_text.h). So a
// formula needs no knowledge of vectors, and a vector none of formulas; a template could not take
// vectors itself, as it would have to be compiled for each of a processor's instruction sets.
// A formula of several operands takes each in a type of its own: they differ where they are terms.
// Whoever walks a term rounds where its parts stand: no product and sum are fused but those that
// the formula fuses.
#pragma once

#include <cmath>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace aloft::scalar {

template <class T>
concept Real = std::is_same_v<T, float> || std::is_same_v<T, double>;

struct Term {};
template <class T>
concept IsTerm = std::is_base_of_v<Term, T>;

// Operand number kIndex of a formula.
template <int kIndex>
struct Var : Term {};
// A condition that is the same for all elements, number kIndex of them.
template <int kIndex>
struct Flag : Term {};
struct Zero : Term {};
struct Constant : Term {
  double value;
  constexpr explicit Constant(double v) : value(v) {}
};

enum class TermOp : std::uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  MulAdd,  // first times second plus third
  Min,
  Neg,
  Abs,
  Sqrt,
  Sign,
  Less,  // conditions
  LessEqual,
  Greater,
  GreaterEqual,
  Equal,
  NotEqual,
  IsNan,
  And,
  Or,
  Where,    // condition, then, otherwise
  KeepNan,  // where the first is NaN the first, else the second
  Quotient,
  Inverse,
  Exp,  // functions
  Exp2,
  Expm1,
  Log,
  Log1p,
  Log1pOfFraction,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Erf,
  NormalBelow,
  NormalBell,
  Floor,
  Ceil,
  Round,
  Pow,
};

template <TermOp kOp, class... In>
struct Apply : Term {
  std::tuple<In...> in;
  constexpr explicit Apply(In... operands) : in(operands...) {}
};

// A whole formula with a name, for those who know more of it than its parts.
enum class FormulaName : std::uint8_t {
  Sigmoid,
  SigmoidSlope,
  Sigmoid2,
  Sigmoid2Slope,
  HardSigmoid
};
template <FormulaName kName, class Formula, class In>
struct Named : Term {
  Formula formula;
  In in;
  constexpr Named(Formula f, In i) : formula(f), in(i) {}
};

// A part that a formula uses more than once, and what stands for it within the body. Tag is a type
// of this place alone.
template <class Tag>
struct Bound : Term {};
template <class Tag, class Part, class Body>
struct Let : Term {
  Part part;
  Body body;
  constexpr Let(Part p, Body b) : part(p), body(b) {}
};
// What tells the tags of a term apart where they are no types any more.
template <class Tag>
inline constexpr char kTagAddress = 0;

template <IsTerm A>
constexpr A as_term(A a) {
  return a;
}
constexpr Constant as_term(double value) { return Constant(value); }

template <TermOp kOp, class... In>
constexpr auto apply(In... in) {
  return Apply<kOp, decltype(as_term(in))...>(as_term(in)...);
}

// One of them at least is a term; the other may be a number.
template <class A, class B>
concept Terms = (IsTerm<A> || IsTerm<B>)&&(IsTerm<A> ||
                                           std::is_arithmetic_v<A>)&&(IsTerm<B> ||
                                                                      std::is_arithmetic_v<B>);

template <class A, class B>
requires Terms<A, B>
constexpr auto operator+(A a, B b) { return apply<TermOp::Add>(a, b); }
template <class A, class B>
requires Terms<A, B>
constexpr auto operator-(A a, B b) { return apply<TermOp::Sub>(a, b); }
template <class A, class B>
requires Terms<A, B>
constexpr auto operator*(A a, B b) { return apply<TermOp::Mul>(a, b); }
template <class A, class B>
requires Terms<A, B>
constexpr auto operator/(A a, B b) { return apply<TermOp::Div>(a, b); }
template <class A, class B>
requires Terms<A, B>
constexpr auto operator<(A a, B b) { return apply<TermOp::Less>(a, b); }
template <class A, class B>
requires Terms<A, B>
constexpr auto operator<=(A a, B b) { return apply<TermOp::LessEqual>(a, b); }
template <class A, class B>
requires Terms<A, B>
constexpr auto operator>(A a, B b) { return apply<TermOp::Greater>(a, b); }
template <class A, class B>
requires Terms<A, B>
constexpr auto operator>=(A a, B b) { return apply<TermOp::GreaterEqual>(a, b); }
template <class A, class B>
requires Terms<A, B>
constexpr auto operator==(A a, B b) { return apply<TermOp::Equal>(a, b); }
template <class A, class B>
requires Terms<A, B>
constexpr auto operator!=(A a, B b) { return apply<TermOp::NotEqual>(a, b); }
template <IsTerm A>
constexpr auto operator-(A a) {
  return apply<TermOp::Neg>(a);
}

// A constant of a formula.
template <Real N>
constexpr N number(double value) {
  return static_cast<N>(value);
}
template <IsTerm N>
constexpr Constant number(double value) {
  return Constant(value);
}

template <Real N>
constexpr N zero() {
  return N(0);
}
template <IsTerm N>
constexpr Zero zero() {
  return {};
}

// `value`, a formula of x, under its name where it is a term.
template <FormulaName kName, Real N>
constexpr N named(N value, N) {
  return value;
}
template <FormulaName kName, IsTerm F, IsTerm N>
constexpr Named<kName, F, N> named(F formula, N x) {
  return {formula, x};
}

// formula(part), in which walkers of terms compute the part once.
template <Real N, class Formula>
constexpr auto let(N part, Formula formula) {
  return formula(part);
}
template <IsTerm N, class Formula>
constexpr auto let(N part, Formula formula) {
  const auto body = formula(Bound<Formula>());
  return Let<Formula, N, std::remove_const_t<decltype(body)>>(part, body);
}

template <Real N>
N abs(N x) {
  return std::abs(x);
}
template <IsTerm N>
constexpr auto abs(N x) {
  return apply<TermOp::Abs>(x);
}

template <Real N>
N sqrt(N x) {
  return std::sqrt(x);
}
template <IsTerm N>
constexpr auto sqrt(N x) {
  return apply<TermOp::Sqrt>(x);
}

// -1, 0, 1; +0 of -0, and NaN stays NaN.
template <Real N>
constexpr N sign(N x) {
  return x > N(0) ? N(1) : x < N(0) ? N(-1) : x == N(0) ? N(0) : x;
}
template <IsTerm N>
constexpr auto sign(N x) {
  return apply<TermOp::Sign>(x);
}

// Of numbers, integers too.
template <class N>
requires std::is_arithmetic_v<N>
constexpr N where(bool condition, N then, N otherwise) { return condition ? then : otherwise; }
template <IsTerm C, class A, class B>
constexpr auto where(C condition, A then, B otherwise) {
  return apply<TermOp::Where>(condition, then, otherwise);
}

// Var<kFirst>, Var<kFirst + 1>, ...: kCount of them, as a tuple.
template <int kFirst, int kCount>
constexpr auto vars() {
  return []<int... i>(std::integer_sequence<int, i...>) { return std::tuple<Var<kFirst + i>...>(); }
  (std::make_integer_sequence<int, kCount>());
}
template <int kCount>
constexpr auto flags() {
  return []<int... i>(std::integer_sequence<int, i...>) { return std::tuple<Flag<i>...>(); }
  (std::make_integer_sequence<int, kCount>());
}

}  // namespace aloft::scalar
