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
std::string text_of(const T& term, const TermNames& names);

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

// Inside: a term's text, and how strongly its outermost sign binds: kLoosest of what is bracketed
// in whatever it is a part of, kTightest of what nowhere is.
struct WrittenTerm {
  static constexpr int kLoosest = 0, kLogic = 1, kCondition = 2, kSum = 3, kProduct = 4, kSign = 5,
                       kTightest = 6;
  std::string text;
  int binds = kTightest;

  // As a part of what binds so strongly.
  std::string inside(int outer) && { return outer > binds ? "(" + text + ")" : std::move(text); }
};

template <IsTerm T>
WrittenTerm written(const T& term, const TermNames& names);

// Inside: how text_of() writes each kind of term.
struct TermWriter {
  const TermNames& names;

  template <int i>
  WrittenTerm write(Var<i>) const {
    return {std::string(names.vars.at(i))};
  }
  template <int i>
  WrittenTerm write(Flag<i>) const {
    return {std::string(names.flags.at(i))};
  }
  WrittenTerm write(Zero) const { return {"0"}; }
  WrittenTerm write(const Constant& c) const {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, c.value).ptr;
    return {{text, end}};
  }
  template <class Tag>
  WrittenTerm write(Bound<Tag>) const {
    for (const auto& [tag, text] : names.bound)
      if (tag == &kTagAddress<Tag>) return {text, WrittenTerm::kLoosest};
    return {"?"};
  }
  template <class Tag, class Part, class Body>
  WrittenTerm write(const Let<Tag, Part, Body>& let) const {
    TermNames inner = names;
    inner.bound.emplace_back(&kTagAddress<Tag>, text_of(let.part, names));
    return written(let.body, inner);
  }
  template <TermOp op, class A>
  WrittenTerm write(const Apply<op, A>& a) const {
    const auto inner = [&](int binds) { return part(std::get<0>(a.in), binds); };
    if constexpr (op == TermOp::Neg) return {"-" + inner(WrittenTerm::kSign)};
    if constexpr (op == TermOp::Abs) return {"|" + inner(0) + "|"};
    if constexpr (op == TermOp::Inverse) return {"1 / " + inner(WrittenTerm::kSign)};
    return {std::string(name_of(op)) + "(" + inner(0) + ")"};
  }
  template <FormulaName kName, class Formula, class In>
  WrittenTerm write(const Named<kName, Formula, In>& named) const {
    return {std::string(name_of(kName)) + "(" + text_of(named.in, names) + ")"};
  }
  template <TermOp op, class A, class B>
  WrittenTerm write(const Apply<op, A, B>& a) const {
    using W = WrittenTerm;
    // What stands right of - or / is bracketed where it binds no more strongly.
    const auto text = [&](const char* sign, int binds, int right) -> W {
      return {part(std::get<0>(a.in), binds) + sign + part(std::get<1>(a.in), right), binds};
    };
    if constexpr (op == TermOp::Add) return text(" + ", W::kSum, W::kSum);
    if constexpr (op == TermOp::Sub) return text(" - ", W::kSum, W::kProduct);
    if constexpr (op == TermOp::Mul) return text(" * ", W::kProduct, W::kProduct);
    if constexpr (op == TermOp::Div || op == TermOp::Quotient)
      return text(" / ", W::kProduct, W::kSign);
    if constexpr (op == TermOp::Less) return text(" < ", W::kCondition, W::kSum);
    if constexpr (op == TermOp::LessEqual) return text(" <= ", W::kCondition, W::kSum);
    if constexpr (op == TermOp::Greater) return text(" > ", W::kCondition, W::kSum);
    if constexpr (op == TermOp::GreaterEqual) return text(" >= ", W::kCondition, W::kSum);
    if constexpr (op == TermOp::Equal) return text(" = ", W::kCondition, W::kSum);
    if constexpr (op == TermOp::NotEqual) return text(" != ", W::kCondition, W::kSum);
    if constexpr (op == TermOp::And) return text(" and ", W::kLogic, W::kCondition);
    if constexpr (op == TermOp::Or) return text(" or ", W::kLogic, W::kCondition);
    if constexpr (op == TermOp::KeepNan) return written(std::get<1>(a.in), names);
    return {std::string(name_of(op)) + "(" + text_of(std::get<0>(a.in), names) + ", " +
            text_of(std::get<1>(a.in), names) + ")"};
  }
  template <class A, class B, class C>
  WrittenTerm write(const Apply<TermOp::MulAdd, A, B, C>& a) const {
    return write(std::get<0>(a.in) * std::get<1>(a.in) + std::get<2>(a.in));
  }
  template <class C, class A, class B>
  WrittenTerm write(const Apply<TermOp::Where, C, A, B>& a) const {
    return {"(" + text_of(std::get<0>(a.in), names) + " ? " + text_of(std::get<1>(a.in), names) +
            " : " + text_of(std::get<2>(a.in), names) + ")"};
  }

 private:
  template <IsTerm T>
  std::string part(const T& term, int binds) const {
    return written(term, names).inside(binds);
  }
};

// Each part is written once: twice, for its name and for its text, would double with every level.
template <IsTerm T>
WrittenTerm written(const T& term, const TermNames& names) {
  WrittenTerm own = TermWriter{names}.write(term);
  for (const auto& [text, name] : names.known)
    if (own.text == text) return {name};
  return own;
}

template <IsTerm T>
std::string text_of(const T& term, const TermNames& names) {
  return written(term, names).text;
}

}  // namespace aloft::scalar
