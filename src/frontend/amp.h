// amp::initialize: apex's call, in C++. Turns a model and an optimizer into their mixed-precision
// form; from then on the same program text runs in that precision, eagerly or compiled.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontend/amp_options.h"
#include "frontend/cast_nested.h"
#include "frontend/module.h"
#include "frontend/optimizer.h"
#include "precision/recipe.h"

namespace aloft::amp {

// A parameter's master has this name with the parameter's behind it.
inline constexpr std::string_view kMasterPrefix = "optim.master.";

// The model under a precision policy: call it like the model.
template <class M>
class Net {
 public:
  // As initialize() makes it; keeps a reference. `outputs`: what floating tensors that the model
  // gives are cast to; nothing: they stay what they are.
  explicit Net(M& model, std::optional<DType> outputs = {}) : model_(&model), outputs_(outputs) {}
  // What the model gives for its arguments, computed in the recipe's types. Of up to three the line
  // of the call is recorded.
  template <class A>
  auto operator()(const A& a, SourceLocation at = SourceLocation::current()) const {
    return call(at, a);
  }
  template <class A, class B>
  requires(!std::is_same_v<B, SourceLocation>) auto operator()(
      const A& a, const B& b, SourceLocation at = SourceLocation::current()) const {
    return call(at, a, b);
  }
  template <class A, class B, class C>
  requires(!std::is_same_v<C, SourceLocation>) auto operator()(
      const A& a, const B& b, const C& c, SourceLocation at = SourceLocation::current()) const {
    return call(at, a, b, c);
  }
  template <class A, class B, class C, class D, class... More>
  requires(!std::is_same_v<D, SourceLocation>) auto operator()(const A& a, const B& b, const C& c,
                                                               const D& d,
                                                               const More&... more) const {
    return call(SourceLocation(), a, b, c, d, more...);
  }

  // The model itself: parameters, train(), eval().
  M& model() const { return *model_; }
  M* operator->() const { return model_; }

 private:
  template <class T>
  static auto operand(const T& value, const SourceLocation& at) {
    if constexpr (std::is_same_v<T, Tensor>)
      return Operand(value, at);
    else
      return value;
  }
  template <class... Args>
  auto call(const SourceLocation& at, const Args&... args) const {
    auto result = in_its_types(at, args...);
    if (outputs_) cast_nested(result, *outputs_);
    return result;
  }
  template <class... Args>
  auto in_its_types(const SourceLocation& at, const Args&... args) const {
    ModuleScope scope("", model_->policy());
    if constexpr (std::is_invocable_v<M&, decltype(operand(args, at))...>)
      return (*model_)(operand(args, at)...);
    else
      return (*model_)(args...);
  }

  M* model_;
  std::optional<DType> outputs_;
};

// An optimizer to be made by initialize(): what it is, and which parameters it trains; none named:
// all of one model, or of all.
struct OptimizerFor {
  OptimizerSpec spec;                        // such as optim::Adam{}
  std::vector<VariablePtr> parameters = {};  // of the models

  // What a spec is made from is one itself.
  template <class S>
  requires std::is_convertible_v<const S&, OptimizerSpec> OptimizerFor(  // NOLINT: in a list
      const S& its_spec, std::vector<VariablePtr> its_parameters = {})
      : spec(its_spec), parameters(std::move(its_parameters)) {}
};

// Converts parameters to the type that the recipe stores them in (O2, O3: the low type), gives them
// fp32 masters where the recipe has them, and makes an optimizer with the recipe's loss scaler.
// What is saved and loaded from then on is the masters' values (models/state_dict.h). Whatever is
// refused leaves the model as it was: UserError E0815 where the optimizer wants split masters and
// the recipe has no bf16 weights with masters, or rounding at random and it has none without, E0809
// where a pattern of the recipe matches no op or no parameter, E0804 where the recipe says "auto",
// E0805 where the model was prepared before, and what an Optimizer refuses.
Optimizer prepare(nn::Module& model, const OptimizerSpec& spec, const PrecisionRecipe& recipe);
// The same for a model that nothing updates, to write, to judge or to take gradients of: no masters
// are kept beside what the recipe stores. UserError E0804, E0805, E0809 as above.
void prepare(nn::Module& model, const PrecisionRecipe& recipe);

// The same for several models, and optimizers that share a loss scale for each of so many losses.
// One optimizer that names no parameters trains all models; of as many as there are models each
// trains its own; else each says what it trains. UserError E0807 where that is not so or a
// parameter is no model's.
std::vector<Optimizer> prepare(const std::vector<nn::Module*>& models,
                               const std::vector<OptimizerFor>& optimizers,
                               const PrecisionRecipe& recipe, std::size_t losses);
// The same by apex's options, which are said on stderr where they ask for it.
std::vector<Optimizer> prepare(const std::vector<nn::Module*>& models,
                               const std::vector<OptimizerFor>& optimizers, const Options& options);

// prepare() with a recipe's text, and the model to call from then on. `precision`: "O0" .. "O3",
// "O2:fp16", "O1:bf16" or a whole recipe text (docs/precision.md). UserError E0711 where it is
// none, and what prepare() refuses.
template <class M>
std::pair<Net<M>, Optimizer> initialize(M& model, const OptimizerSpec& spec,
                                        std::string_view precision) {
  Optimizer optimizer = prepare(model, spec, parse_precision(precision));
  return {Net<M>(model), std::move(optimizer)};
}

// The same by apex's options, whose low type is fp16 where they name no other. UserError E0711 for
// options that do not go together.
template <class M>
std::pair<Net<M>, Optimizer> initialize(M& model, const OptimizerSpec& spec,
                                        const Options& options = {}) {
  std::vector<Optimizer> one = prepare({&model}, {OptimizerFor(spec)}, options);
  return {Net<M>(model, resolve(options).outputs), std::move(one[0])};
}
// With several optimizers, each of which says what it trains.
template <class M>
std::pair<Net<M>, std::vector<Optimizer>> initialize(M& model,
                                                     const std::vector<OptimizerFor>& optimizers,
                                                     const Options& options = {}) {
  std::vector<Optimizer> all = prepare({&model}, optimizers, options);
  return {Net<M>(model, resolve(options).outputs), std::move(all)};
}
// Several models, std::tie(a, b), with one optimizer for all, with one for each, or with optimizers
// that say what they train.
template <class... M>
std::pair<std::tuple<Net<M>...>, std::vector<Optimizer>> initialize(
    std::tuple<M&...> models, const std::vector<OptimizerFor>& optimizers,
    const Options& options = {}) {
  return std::apply(
      [&](M&... model) {
        std::vector<Optimizer> all = prepare({&model...}, optimizers, options);
        return std::pair{std::tuple{Net<M>(model, resolve(options).outputs)...}, std::move(all)};
      },
      models);
}
// A model that nothing trains.
template <class M>
Net<M> initialize(M& model, const Options& options) {
  prepare({&model}, {}, options);
  return Net<M>(model, resolve(options).outputs);
}

}  // namespace aloft::amp
