// amp::initialize: apex's call, in C++. Turns a model and an optimizer into their mixed-precision
// form; from then on the same program text runs in that precision, eagerly or compiled.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

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
  explicit Net(M& model) : model_(&model) {}  // as initialize() makes it; keeps a reference
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
    ModuleScope scope("", model_->policy());
    if constexpr (std::is_invocable_v<M&, decltype(operand(args, at))...>)
      return (*model_)(operand(args, at)...);
    else
      return (*model_)(args...);
  }

  M* model_;
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

// prepare() with a recipe's text, and the model to call from then on. `precision`: "O0" .. "O3",
// "O2:fp16", "O1:bf16" or a whole recipe text (docs/precision.md). UserError E0711 where it is
// none, and what prepare() refuses.
template <class M>
std::pair<Net<M>, Optimizer> initialize(M& model, const OptimizerSpec& spec,
                                        std::string_view precision) {
  Optimizer optimizer = prepare(model, spec, parse_precision(precision));
  return {Net<M>(model), std::move(optimizer)};
}

}  // namespace aloft::amp
