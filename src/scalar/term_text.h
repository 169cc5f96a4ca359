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
};

template <IsTerm T>
std::string text_of(const T& term, const TermNames& names, int outer = 0);

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
  std::string write(const Constant& c, int) const {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, c.value).ptr;
    return {text, end};
  }
  template <TermOp op, class A>
  std::string write(const Apply<op, A>& a, int) const {
    const auto inner = [&](int binds) { return text_of(std::get<0>(a.in), names, binds); };
    if constexpr (op == TermOp::Neg) return "-" + inner(kSign);
    if constexpr (op == TermOp::Abs) return "|" + inner(0) + "|";
    if constexpr (op == TermOp::Sqrt) return "sqrt(" + inner(0) + ")";
    if constexpr (op == TermOp::Sign) return "sign(" + inner(0) + ")";
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
    if constexpr (op == TermOp::Div) return text(" / ", kProduct, kSign);
    if constexpr (op == TermOp::Less) return text(" < ", kCondition, kSum);
    if constexpr (op == TermOp::Greater) return text(" > ", kCondition, kSum);
  }
  template <class C, class A, class B>
  std::string write(const Apply<TermOp::Where, C, A, B>& a, int) const {
    return "(" + text_of(std::get<0>(a.in), names) + " ? " + text_of(std::get<1>(a.in), names) +
           " : " + text_of(std::get<2>(a.in), names) + ")";
  }

  static constexpr int kCondition = 1, kSum = 2, kProduct = 3,
                       kSign = 4;  // how strongly each binds
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
