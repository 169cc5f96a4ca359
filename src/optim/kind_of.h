// Inside: makes the record of an optimizer from its struct. Each pair of this folder uses it once.
#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "optim/kind.h"
#include "optim/tensor_formula.h"
#include "scalar/term_text.h"

namespace aloft::optim {

// The formulas of the options O, as a std::tuple: O itself, or those that it names. Of several each
// has a kName.
template <class O>
struct FormulasOf {
  using type = std::tuple<O>;
};
template <class O>
requires requires { typename O::Formula; }
struct FormulasOf<O> {
  using type = std::tuple<typename O::Formula>;
};
template <class O>
requires requires { typename O::Formulas; }
struct FormulasOf<O> {
  using type = typename O::Formulas;
};

// Its options' values as attributes, and back: those that `attrs` does not name keep the struct's.
template <class F>
Attrs attrs_of(const F& formula) {
  Attrs out;
  F::fields().each([&](const auto& f) { out.set(f.key, AttrValue(formula.*(f.member))); });
  return out;
}
template <class F>
F formula_of(const Attrs& attrs) {
  F formula;
  const auto take = [&](const auto& f) {
    using T = std::remove_cvref_t<decltype(formula.*(f.member))>;
    if (const AttrValue* v = attrs.find(f.key)) formula.*(f.member) = std::get<T>(*v);
  };
  F::fields().each(take);
  return formula;
}

template <class F>
class FormulaIn : public BoundFormula {
 public:
  explicit FormulaIn(const F& formula) : formula_(formula) {}

  StepNumbers numbers(const UpdateStep& step) const override {
    StepNumbers n;
    std::ranges::copy(formula_.numbers(step), n.number.begin());
    if constexpr (!OfTensors<F>) std::ranges::copy(formula_.flags(step), n.flag.begin() + 1);
    return n;
  }
  TensorNumbers tensor_numbers(std::span<const double> sums,
                               [[maybe_unused]] const StepNumbers& numbers,
                               [[maybe_unused]] bool decays,
                               [[maybe_unused]] TensorStates& states) const override {
    TensorNumbers n = {};
    if constexpr (NeedsSums<F>) {
      std::array<double, sum_count<F>()> own;
      std::copy_n(sums.begin(), own.size(), own.begin());
      std::array<double, number_count<F>()> number;
      std::copy_n(numbers.number.begin(), number.size(), number.begin());
      if constexpr (KeepsTensorStates<F>) {
        std::array<double, tensor_state_count<F>()> kept;
        std::copy_n(states.begin(), kept.size(), kept.begin());
        kept = formula_.tensor_states(own, number, kept);
        std::ranges::copy(kept, states.begin());
        std::ranges::copy(formula_.tensor_numbers(own, number, decays, kept), n.begin());
      } else if constexpr (requires { formula_.tensor_numbers(own); }) {
        std::ranges::copy(formula_.tensor_numbers(own), n.begin());
      } else {
        std::ranges::copy(formula_.tensor_numbers(own, number, decays), n.begin());
      }
    }
    return n;
  }
  void step(ElementValues& e, const StepNumbers& numbers, const TensorNumbers& tensor,
            bool decays) const override {
    if constexpr (OfTensors<F>) {
      static_cast<void>(e), static_cast<void>(numbers), static_cast<void>(tensor);
      static_cast<void>(decays);
      throw InternalError("a formula of tensors has no elements");
    } else {
      const auto out = F::step(element(e, numbers, tensor, decays));
      e.value = std::get<0>(out);
      [&]<std::size_t... i>(std::index_sequence<i...>) {
        ((e.state[i] = std::get<i + 1>(out)), ...);
      }
      (std::make_index_sequence<state_count<F>()>());
    }
  }
  std::array<double, kMostSums> summed(const ElementValues& e, const StepNumbers& numbers,
                                       bool decays) const override {
    std::array<double, kMostSums> out = {};
    if constexpr (NeedsSums<F>)
      std::apply([&](auto... v) { std::ranges::copy(std::array{v...}, out.begin()); },
                 F::squares(element(e, numbers, {}, decays)));
    return out;
  }

 private:
  static auto element(const ElementValues& e, const StepNumbers& numbers,
                      const TensorNumbers& tensor, bool decays) {
    std::array<double, state_count<F>()> states;
    std::array<double, number_count<F>()> number;
    std::array<bool, flag_count<F>()> flags;
    std::array<double, tensor_number_count<F>()> of_tensor;
    std::copy_n(e.state.begin(), states.size(), states.begin());
    std::copy_n(numbers.number.begin(), number.size(), number.begin());
    std::copy_n(numbers.flag.begin(), flags.size(), flags.begin());
    flags[0] = decays;
    std::copy_n(tensor.begin(), of_tensor.size(), of_tensor.begin());
    return Element{e.value, e.gradient, states, number, flags, of_tensor};
  }

  F formula_;
};

// The texts of a term's operations, each once: what is computed.
template <class T>
void add_operations(const T&, const scalar::TermNames&, std::set<std::string>&) {}
template <scalar::TermOp op, class... In>
void add_operations(const scalar::Apply<op, In...>& term, const scalar::TermNames& names,
                    std::set<std::string>& seen) {
  seen.insert(text_of(term, names));
  std::apply([&](const auto&... in) { (add_operations(in, names, seen), ...); }, term.in);
}

template <class F>
scalar::TermNames names_of() {
  scalar::TermNames names;
  names.vars = {"p", "g"};
  names.vars.insert(names.vars.end(), F::kStates.begin(), F::kStates.end());
  names.vars.insert(names.vars.end(), F::kNumbers.begin(), F::kNumbers.end());
  if constexpr (NeedsSums<F>)
    names.vars.insert(names.vars.end(), F::kTensorNumbers.begin(), F::kTensorNumbers.end());
  names.flags = {"decays"};
  names.flags.insert(names.flags.end(), F::kFlags.begin(), F::kFlags.end());
  return names;
}

// The definitions first, equations of what the names of numbers and flags name (F::kDefinitions,
// where there are any), the states, then what is squared: the parameter's new value is written with
// their names. A new value is primed.
template <class F>
void add_text(FormulaRecord& record) {
  const auto out = F::step(element_of_terms<F>());
  const scalar::TermNames plain = names_of<F>();
  scalar::TermNames names = plain;
  std::set<std::string> operations;
  if constexpr (requires { F::kDefinitions; })
    record.text.assign(F::kDefinitions.begin(), F::kDefinitions.end());
  const auto say = [&](const std::string& what, const auto& term) {
    record.text.push_back(what + " = " + text_of(term, names));
    names.known.emplace_back(text_of(term, plain), what);
    add_operations(term, plain, operations);
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (say(std::string(F::kStates[i]) + "'", std::get<i + 1>(out)), ...);
  }
  (std::make_index_sequence<state_count<F>()>());
  if constexpr (NeedsSums<F>) {
    const auto squares = F::squares(element_of_terms<F>());
    const auto name = [&]<class T>(std::string_view what, const T& term) {
      // p and g are what their names say
      constexpr bool is_given = std::is_same_v<T, scalar::Var<Places<F>::kP>> ||
                                std::is_same_v<T, scalar::Var<Places<F>::kG>>;
      if constexpr (!is_given) say(std::string(what), term);
      record.squares.push_back(what);
    };
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (name(F::kSquares[i], std::get<i>(squares)), ...);
    }
    (std::make_index_sequence<sum_count<F>()>());
  }
  say("p'", std::get<0>(out));
  record.operations = static_cast<int>(operations.size());
}

template <class F>
std::vector<RuleNumber> numbers_of(const Attrs& attrs) {
  using enum RuleNumber::Range;
  std::vector<RuleNumber> out;
  const F formula = formula_of<F>(attrs);
  const auto add = [&](const auto& f) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(formula.*(f.member))>, double>)
      out.push_back({f.key, formula.*(f.member),
                     f.limits.is_below                               ? BelowOne
                     : f.limits.has_range() && f.limits.least >= 0.0 ? FromZero
                                                                     : Finite});
  };
  F::fields().each(add);
  return out;
}

// What a formula of tensors says besides, or what follows from one of elements.
template <class F>
void add_form(FormulaRecord& r) {
  static_assert(state_count<F>() <= kMostStates && number_count<F>() <= kMostNumbers);
  if constexpr (OfTensors<F>) {
    r.is_of_tensors = true;
    r.least_states = F::kLeastStates;
    r.state_shape = F::state_shape;
  } else {
    static_assert(flag_count<F>() <= kMostFlags && sum_count<F>() <= kMostSums &&
                  tensor_number_count<F>() <= kMostNumbers &&
                  tensor_state_count<F>() <= kMostTensorStates);
    r.sums = sum_count<F>();
    r.least_states = state_count<F>();
    r.state_shape = [](std::size_t k, const Shape& parameter, bool) {
      return k < static_cast<std::size_t>(state_count<F>()) ? parameter : Shape{};
    };
    add_text<F>(r);
  }
}

template <class F>
FormulaRecord formula_record(std::string_view name, std::string_view meaning,
                             const std::vector<F>& samples) {
  FormulaRecord r;
  r.name = name;
  r.meaning = meaning;
  r.states.assign(F::kStates.begin(), F::kStates.end());
  if constexpr (KeepsTensorStates<F>)
    r.states.insert(r.states.end(), F::kTensorStates.begin(), F::kTensorStates.end());
  r.tensor_states = tensor_state_count<F>();
  if constexpr (requires { F::kNotNegative; })
    r.not_negative.assign(F::kNotNegative.begin(), F::kNotNegative.end());
  if constexpr (requires { F::kNeedsWholeStates; }) r.needs_whole_states = F::kNeedsWholeStates;
  r.numbers_of_step.assign(F::kNumbers.begin(), F::kNumbers.end());
  r.options = attrs_of(F());
  F::fields().each([&](const auto& f) { r.option_docs.emplace_back(f.key, f.meaning); });
  add_form<F>(r);
  r.bind = [](const Attrs& attrs) -> std::unique_ptr<const BoundFormula> {
    return std::make_unique<FormulaIn<F>>(formula_of<F>(attrs));
  };
  r.numbers = numbers_of<F>;
  for (const F& f : samples) r.samples.push_back(attrs_of(f));
  return r;
}

// The settings of O: options that name a list are its elements.
template <class O>
std::vector<OptimizerSetting> settings_of() {
  std::vector<OptimizerSetting> out;
  const O first;
  const auto add = [&](const auto& f) {
    const auto value = first.*(f.member);
    const auto known = std::ranges::find(out, f.list, &OptimizerSetting::key);
    if (f.list.empty())
      out.push_back({{f.key, value, f.limits, f.meaning}, f.resumed});
    else if (known == out.end())
      out.push_back({{f.list, std::vector<double>{static_cast<double>(value)}, f.limits, f.meaning},
                     f.resumed});
    else
      std::get<std::vector<double>>(known->fallback).push_back(static_cast<double>(value));
  };
  O::fields().each(add);
  return out;
}

// What `values` say; the rest is as the struct has it.
template <class O>
O options_of(const SettingValues& values) {
  O options;
  std::vector<std::string_view> lists;  // of the options before
  const auto take = [&](const auto& f) {
    using T = std::remove_cvref_t<decltype(options.*(f.member))>;
    const auto place = static_cast<std::size_t>(std::ranges::count(lists, f.list));
    lists.push_back(f.list);
    const auto it = values.find(f.list.empty() ? f.key : f.list);
    if (it == values.end()) return;
    if (f.list.empty())
      options.*(f.member) = std::get<T>(it->second);
    else if constexpr (std::is_same_v<T, double>)
      options.*(f.member) = std::get<std::vector<double>>(it->second).at(place);
  };
  O::fields().each(take);
  return options;
}

// The record of the options O. `samples`: for each of its formulas, options of it that its op and
// its kernel are tested with.
template <class O, class... F>
OptimizerKind kind_with(std::string_view name, std::string_view meaning,
                        const std::vector<F>&... samples) {
  static_assert(std::is_same_v<typename FormulasOf<O>::type, std::tuple<F...>>);
  OptimizerKind k;
  k.name = name;
  k.meaning = meaning;
  k.usual_lr = O().lr;
  k.settings = settings_of<O>();
  if constexpr (requires(const O& o) { o.rest; }) k.usual_rest = O().rest;
  const auto add = [&]<class One>(const std::vector<One>& own) {
    if constexpr (requires { One::kName; })
      k.formulas.push_back(formula_record<One>(One::kName, meaning, own));
    else
      k.formulas.push_back(formula_record<One>(name, meaning, own));
  };
  (add(samples), ...);
  k.rule = [](const SettingValues& values) { return options_of<O>(values).rule(); };
  k.misfit = [](const SettingValues& values) -> std::optional<OptionMisfit> {
    if constexpr (requires(const O& o) { o.misfit(); }) return options_of<O>(values).misfit();
    return std::nullopt;
  };
  return k;
}
// Of one formula.
template <class O>
OptimizerKind kind_of(
    std::string_view name, std::string_view meaning,
    const std::vector<std::tuple_element_t<0, typename FormulasOf<O>::type>>& samples) {
  return kind_with<O>(name, meaning, samples);
}

// The rule of a formula of this name.
template <class F>
UpdateRule rule_of(std::string_view name, const F& formula) {
  return {&formula_named(name), attrs_of(formula)};
}
// Of one that says its name.
template <class F>
UpdateRule rule_of(const F& formula) {
  return rule_of(F::kName, formula);
}

// What every struct of options says beside its formula's.
template <class O>
OptimizerSpec spec_of(const O& o) {
  OptimizerSpec spec{.rule = o.rule(),
                     .lr = o.lr,
                     .weight_decay = o.weight_decay,
                     .maximize = o.maximize,
                     .clip_norm = o.clip_norm,
                     .clip_adaptive = o.clip_adaptive,
                     .clip_value = o.clip_value,
                     .schedule = o.schedule,
                     .groups = o.groups,
                     .master = o.master,
                     .update = o.update,
                     .decay = o.decay,
                     .states = o.states,
                     .rounding = o.rounding,
                     .average = o.average,
                     .foreach = o.foreach,
                     .fused = o.fused,
                     .capturable = o.capturable,
                     .differentiable = o.differentiable};
  if constexpr (!requires { O::kOwnMaxGradNorm; }) {
    spec.max_grad_norm = o.max_grad_norm;
    if (o.clip_norm == 0) spec.clip_norm = o.max_grad_norm;
  }
  if constexpr (requires { o.rest; }) spec.rest = o.rest;
  return spec;
}

}  // namespace aloft::optim
