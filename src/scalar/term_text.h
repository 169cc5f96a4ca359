// Terms as text, for documentation that is written where the formula is: "p - lr * sign(c)".
#pragma once

#include <charconv>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalar/terms.h"

namespace aloft::scalar {

// What a text calls a term's parts.
struct TermNames {
  std::vector<std::string_view> vars, flags;
  // Texts of whole terms that have a name: where such a term is a part of another, its name stands.
  std::vector<std::pair<std::string, std::string>> known = {};
  // Inside: the texts of parts that are bound, by their tags' addresses.
  std::vector<std::pair<const void*, std::string>> bound = {};
};

template <IsTerm T>
std::string text_of(const T& term, const TermNames& names, int outer = 0);

// A function's name in a text.
constexpr std::string_view name_of(TermOp op) {
  switch (op) {
    using enum TermOp;
    case Sqrt:
      return "sqrt";
    case Sign:
      return "sign";
    case Min:
      return "min";
    case IsNan:
      return "is_nan";
    case Exp:
      return "exp";
    case Exp2:
      return "exp2";
    case Expm1:
      return "expm1";
    case Log:
      return "log";
    case Log1p:
    case Log1pOfFraction:
      return "log1p";
    case Sin:
      return "sin";
    case Cos:
      return "cos";
    case Tan:
      return "tan";
    case Asin:
      return "asin";
    case Acos:
      return "acos";
    case Atan:
      return "atan";
    case Sinh:
      return "sinh";
    case Cosh:
      return "cosh";
    case Tanh:
      return "tanh";
    case Erf:
      return "erf";
    case NormalBelow:
      return "Phi";
    case NormalBell:
      return "bell";
    case Floor:
      return "floor";
    case Ceil:
      return "ceil";
    case Round:
      return "round";
    case Pow:
      return "pow";
    default:
      return "?";
  }
}
constexpr std::string_view name_of(FormulaName name) {
  switch (name) {
    using enum FormulaName;
    case Sigmoid:
      return "sigmoid";
    case SigmoidSlope:
      return "slope_of_sigmoid";
    case Sigmoid2:
      return "sigmoid2";
    case Sigmoid2Slope:
      return "slope_of_sigmoid2";
    case HardSigmoid:
      return "hard_sigmoid";
  }
  return "?";
}

// Inside: how text_of() writes each kind of term; `outer` binds as strongly as what stands around.
struct TermWriter {
  const TermNames& names;

  template <int i>
  std::string write(Var<i>, int) const {
    return std::string(names.vars.at(i));
  }
  template <int i>
  std::string write(Flag<i>, int) const {
    return std::string(names.flags.at(i));
  }
  std::string write(Zero, int) const { return "0"; }
  std::string write(const Constant& c, int) const {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, c.value).ptr;
    return {text, end};
  }
  template <class Tag>
  std::string write(Bound<Tag>, int outer) const {
    for (const auto& [tag, text] : names.bound)
      if (tag == &kTagAddress<Tag>) return outer > 0 ? "(" + text + ")" : text;
    return "?";
  }
  template <class Tag, class Part, class Body>
  std::string write(const Let<Tag, Part, Body>& let, int outer) const {
    TermNames inner = names;
    inner.bound.emplace_back(&kTagAddress<Tag>, text_of(let.part, names));
    return text_of(let.body, inner, outer);
  }
  template <TermOp op, class A>
  std::string write(const Apply<op, A>& a, int) const {
    const auto inner = [&](int binds) { return text_of(std::get<0>(a.in), names, binds); };
    if constexpr (op == TermOp::Neg) return "-" + inner(kSign);
    if constexpr (op == TermOp::Abs) return "|" + inner(0) + "|";
    if constexpr (op == TermOp::Inverse) return "1 / " + inner(kSign);
    return std::string(name_of(op)) + "(" + inner(0) + ")";
  }
  template <FormulaName kName, class Formula, class In>
  std::string write(const Named<kName, Formula, In>& named, int) const {
    return std::string(name_of(kName)) + "(" + text_of(named.in, names) + ")";
  }
  template <TermOp op, class A, class B>
  std::string write(const Apply<op, A, B>& a, int outer) const {
    // What stands right of - or / is bracketed where it binds no more strongly.
    const auto text = [&](const char* sign, int binds, int right) {
      const std::string both = text_of(std::get<0>(a.in), names, binds) + sign +
                               text_of(std::get<1>(a.in), names, right);
      return outer > binds ? "(" + both + ")" : both;
    };
    if constexpr (op == TermOp::Add) return text(" + ", kSum, kSum);
    if constexpr (op == TermOp::Sub) return text(" - ", kSum, kProduct);
    if constexpr (op == TermOp::Mul) return text(" * ", kProduct, kProduct);
    if constexpr (op == TermOp::Div || op == TermOp::Quotient) return text(" / ", kProduct, kSign);
    if constexpr (op == TermOp::Less) return text(" < ", kCondition, kSum);
    if constexpr (op == TermOp::LessEqual) return text(" <= ", kCondition, kSum);
    if constexpr (op == TermOp::Greater) return text(" > ", kCondition, kSum);
    if constexpr (op == TermOp::GreaterEqual) return text(" >= ", kCondition, kSum);
    if constexpr (op == TermOp::Equal) return text(" = ", kCondition, kSum);
    if constexpr (op == TermOp::NotEqual) return text(" != ", kCondition, kSum);
    if constexpr (op == TermOp::And) return text(" and ", kLogic, kCondition);
    if constexpr (op == TermOp::Or) return text(" or ", kLogic, kCondition);
    if constexpr (op == TermOp::KeepNan) return text_of(std::get<1>(a.in), names, outer);
    return std::string(name_of(op)) + "(" + text_of(std::get<0>(a.in), names) + ", " +
           text_of(std::get<1>(a.in), names) + ")";
  }
  template <class A, class B, class C>
  std::string write(const Apply<TermOp::MulAdd, A, B, C>& a, int outer) const {
    return write(std::get<0>(a.in) * std::get<1>(a.in) + std::get<2>(a.in), outer);
  }
  template <class C, class A, class B>
  std::string write(const Apply<TermOp::Where, C, A, B>& a, int) const {
    return "(" + text_of(std::get<0>(a.in), names) + " ? " + text_of(std::get<1>(a.in), names) +
           " : " + text_of(std::get<2>(a.in), names) + ")";
  }

  static constexpr int kLogic = 1, kCondition = 2, kSum = 3, kProduct = 4,
                       kSign = 5;  // how strongly each binds
};

template <IsTerm T>
std::string text_of(const T& term, const TermNames& names, int outer) {
  const TermWriter writer{names};
  if (!names.known.empty()) {
    const std::string alone = writer.write(term, 0);
    for (const auto& [text, name] : names.known)
      if (alone == text) return name;
  }
  return writer.write(term, outer);
}

}  // namespace aloft::scalar
