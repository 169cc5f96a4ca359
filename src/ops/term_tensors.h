// A formula (scalar/terms.h) as ops of a graph: the way from a derivative, which stands once in
// scalar/, to the body of its op, from which the derivative of that follows.
#pragma once

#include <algorithm>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/compare.h"
#include "ops/logical.h"
#include "ops/unary.h"
#include "ops/where.h"
#include "scalar/terms.h"

namespace aloft {

// Emits the ops of a term whose operands are `vars`, of one float type, constants in that type.
// Named formulas with an op of their own become that op: written on |x|, as vectors want them, they
// would have no slope at 0.
class TermTensors {
 public:
  explicit TermTensors(std::span<const Tensor> vars) : vars_(vars) {}

  template <class Tag>
  Tensor of(scalar::Bound<Tag>) const {
    return std::find_if(bound_.begin(), bound_.end(),
                        [](const auto& part) { return part.first == &scalar::kTagAddress<Tag>; })
        ->second;
  }
  template <class Tag, class Part, class Body>
  Tensor of(const scalar::Let<Tag, Part, Body>& let) const {
    TermTensors inner = *this;
    inner.bound_.emplace_back(&scalar::kTagAddress<Tag>, of(let.part));
    return inner.of(let.body);
  }

  template <int i>
  Tensor of(scalar::Var<i>) const {
    return vars_[i];
  }
  Tensor of(scalar::Zero) const { return constant(0); }
  Tensor of(scalar::Constant c) const { return constant(c.value); }
  // A product of constants is one: f32 rounds its factors, and a graph has no use for them.
  Tensor of(const scalar::Apply<scalar::TermOp::Mul, scalar::Constant, scalar::Constant>& t) const {
    return constant(std::get<0>(t.in).value * std::get<1>(t.in).value);
  }

  template <scalar::FormulaName kName, class Formula, class In>
  Tensor of(const scalar::Named<kName, Formula, In>& term) const {
    using enum scalar::FormulaName;
    const Tensor x = of(term.in);
    if constexpr (kName == HardSigmoid) return hard_sigmoid(x);
    const Tensor natural =
        kName == Sigmoid2 || kName == Sigmoid2Slope ? x * constant(std::numbers::ln2) : x;
    if constexpr (kName == Sigmoid || kName == Sigmoid2) return sigmoid(natural);
    return sigmoid(natural) * sigmoid(-natural);
  }

  template <scalar::TermOp op, class A>
  Tensor of(const scalar::Apply<op, A>& term) const {
    using enum scalar::TermOp;
    const Tensor a = of(std::get<0>(term.in));
    if constexpr (op == Neg) {
      return -a;
    } else if constexpr (op == Abs) {
      return abs(a);
    } else if constexpr (op == Exp) {
      return exp(a);
    } else if constexpr (op == NormalBelow) {
      return (erf(a * constant(std::numbers::sqrt2 / 2)) + 1) * 0.5;
    } else {
      static_assert(op == NormalBell, "no derivative has this function");
      return exp(square(a) * -0.5);
    }
  }

  template <scalar::TermOp op, class A, class B>
  Tensor of(const scalar::Apply<op, A, B>& term) const {
    using enum scalar::TermOp;
    const auto& [first, second] = term.in;
    if constexpr (op == KeepNan) {
      return of(second);
    } else {
      const Tensor a = of(first), b = of(second);
      if constexpr (op == Add) {
        return a + b;
      } else if constexpr (op == Mul) {
        return a * b;
      } else if constexpr (op == Div || op == Quotient) {
        return a / b;
      } else if constexpr (op == Min) {
        return minimum(a, b);
      } else if constexpr (op == Less) {
        return less(a, b);
      } else if constexpr (op == LessEqual) {
        return less_equal(a, b);
      } else if constexpr (op == Greater) {
        return greater(a, b);
      } else {
        static_assert(op == And, "no derivative has this function");
        return logical_and(a, b);
      }
    }
  }

  template <scalar::TermOp op, class A, class B, class C>
  Tensor of(const scalar::Apply<op, A, B, C>& term) const {
    const auto& [first, second, third] = term.in;
    const Tensor a = of(first), b = of(second), c = of(third);
    if constexpr (op == scalar::TermOp::MulAdd) {
      return a * b + c;
    } else {
      static_assert(op == scalar::TermOp::Where);
      return where(a, b, c);
    }
  }

 private:
  Tensor constant(double value) const { return scalar_like(vars_[0], value); }
  std::span<const Tensor> vars_;
  std::vector<std::pair<const void*, Tensor>> bound_;  // parts by their tags' addresses
};

}  // namespace aloft
