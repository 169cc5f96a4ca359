// value_and_grad: a function's loss together with its gradients, as MindSpore (and JAX) have it.
#pragma once

#include <concepts>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontend/assigned.h"
#include "frontend/nested.h"
#include "frontend/optimizer.h"

namespace aloft {

// What torch.autograd.grad() is told of gradients beside what they are of.
struct GradientsOptions {
  // Whether gradients can be taken of the gradients, as of a penalty on them. Eagerly the loss can
  // be differentiated again behind it, which takes the memory of both; a compiled function keeps
  // what its gradients need anyway.
  bool create_graph = false;
};

// Gradients of a scalar with respect to parameters, in their order and types; zeros where it does
// not depend on one. In both modes. UserError E0803 where it is not one number, E0322 where it
// depends on none of them, E0321 where it cannot be differentiated any more.
//
//   const Tensor loss = cross_entropy(net(x), y);
//   Tensor squares = full({}, 0);
//   for (const Tensor& g : gradients_of(loss, net.parameters(), {.create_graph = true}))
//     squares = squares + sum(square(g));
//   (loss + sqrt(squares)).backward();
std::vector<Tensor> gradients_of(const Tensor& loss, const std::vector<VariablePtr>& parameters,
                                 const GradientsOptions& options = {});

// How value_and_grad() takes what f gives.
struct ValueAndGradOptions {
  bool has_aux = false;  // whether f gives more than its loss
};

// Arguments of a function, counted from 0, that value_and_grad() takes gradients of.
struct GradPosition {
  std::vector<int> at;                                                   // each once
  GradPosition(std::initializer_list<int> positions) : at(positions) {}  // {0, 2}
};

namespace grads {
// Inside: the first tensor of a value; the others are detached.
struct Split : nested::Quiet {
  Tensor first = {};
  bool has_more = false;
  void tensor(Tensor& t);
};
// Inside: UserError E0803 where a value is not what the options say.
void check(const Split& split, const ValueAndGradOptions& options);

// Inside: an argument where it is a tensor, or null.
inline Tensor* tensor_of(Tensor& argument) { return &argument; }
template <class A>
Tensor* tensor_of(A&) {
  return nullptr;
}
// Inside: each argument that is asked for is made a tensor of its own (ops/identity.h), which is
// that argument and no other, whatever else f reads of the same value. In the positions' order.
// UserError E0803 where one is no tensor of floating-point numbers, or asked for twice.
std::vector<Tensor> own(const GradPosition& positions, const std::vector<Tensor*>& arguments);
// Inside: how an argument is handed on: a tensor as a handle of its own, anything else as it came.
template <class A>
using Passed = std::conditional_t<std::is_same_v<std::decay_t<A>, Tensor>, Tensor, A>;
// Inside: gradients of a scalar with respect to tensors.
std::vector<Tensor> of_inputs(const Tensor& loss, const std::vector<Tensor>& inputs);

// Inside: f's value, and what `gradients` makes of its loss and the arguments at the positions.
template <class F, class Gradients>
auto beside(F f, GradPosition positions, Gradients gradients, const ValueAndGradOptions& options) {
  need_assigned(f, "value_and_grad()");
  return [f = std::move(f), positions = std::move(positions), gradients = std::move(gradients),
          options](auto&&... arguments) {
    std::tuple<Passed<decltype(arguments)>...> passed(
        std::forward<decltype(arguments)>(arguments)...);
    const std::vector<Tensor> inputs =
        std::apply([&](auto&... each) { return own(positions, {tensor_of(each)...}); }, passed);
    auto value = std::apply(
        [&](auto&... each) { return f(std::forward<decltype(arguments)>(each)...); }, passed);
    Split split;
    nested::visit(value, split);
    check(split, options);
    return std::pair{std::move(value), gradients(split.first, inputs)};
  };
}
}  // namespace grads

// f's loss together with its (scaled) gradients, for apply_gradients(). In both modes. UserError
// E0302 where f was never assigned.
//
//   auto loss_fn = [&](Tensor x, Tensor y) { return cross_entropy(net(x), y); };
//   auto grad_fn = value_and_grad(loss_fn, opt);
//   auto step = compile([&](Tensor x, Tensor y) {
//     auto [loss, gradients] = grad_fn(x, y);
//     return apply_gradients(loss, gradients, opt);
//   });
//
// With has_aux f gives the loss first and more behind it, in a tuple, a struct or a vector
// (frontend/nested.h): it is handed on, and no gradient passes it. UserError E0803 where f gives
// more than a loss without has_aux, or with it a loss alone.
//
//   auto loss_fn = [&](Tensor x, Tensor y) {
//     const Tensor logits = net(x);
//     return std::pair{cross_entropy(logits, y), logits};
//   };
//   auto [value, gradients] = value_and_grad(loss_fn, opt, {.has_aux = true})(x, y);
template <class F>
auto value_and_grad(F f, Optimizer& optimizer, const ValueAndGradOptions& options = {}) {
  return grads::beside(
      std::move(f), {},
      [handle = optimizer](const Tensor& loss, const std::vector<Tensor>&) {
        Optimizer same = handle;  // copies are one optimizer
        return scaled_gradients(loss, same);
      },
      options);
}
// The same with gradients_of() parameters, which no loss scale of an optimizer is in: for a loss
// scaler of the loop's own (frontend/loss_scalers.h).
template <class F>
auto value_and_grad(F f, std::vector<VariablePtr> parameters,
                    const ValueAndGradOptions& options = {}) {
  return grads::beside(
      std::move(f), {},
      [parameters = std::move(parameters)](const Tensor& loss, const std::vector<Tensor>&) {
        return gradients_of(loss, parameters);
      },
      options);
}

// f's loss together with its gradients with respect to arguments, in the order of the positions and
// in their types; zeros where it does not depend on one. A tensor that is given at several
// positions is another argument at each, and what f reads besides is none. No loss scale is in
// them. UserError E0803 where an argument is no tensor of floating-point numbers.
//
//   auto [loss, inputs] = value_and_grad(loss_fn, GradPosition{0})(x, y);
template <class F>
auto value_and_grad(F f, GradPosition positions, const ValueAndGradOptions& options = {}) {
  return grads::beside(
      std::move(f), std::move(positions),
      [](const Tensor& loss, const std::vector<Tensor>& inputs) {
        return grads::of_inputs(loss, inputs);
      },
      options);
}
// The same, and those of gradients_of() parameters beside them.
//
//   auto [loss, gradients] = value_and_grad(loss_fn, GradPosition{0}, parameters)(x, y);
//   auto [of_inputs, of_parameters] = gradients;
template <class F, class Parameters>
requires std::convertible_to<Parameters, std::vector<VariablePtr>>
auto value_and_grad(F f, GradPosition positions, Parameters&& of,
                    const ValueAndGradOptions& options = {}) {
  std::vector<VariablePtr> parameters = std::forward<Parameters>(of);
  return grads::beside(
      std::move(f), std::move(positions),
      [parameters = std::move(parameters)](const Tensor& loss, const std::vector<Tensor>& inputs) {
        std::vector<Tensor> of_inputs = grads::of_inputs(loss, inputs);
        return std::pair{std::move(of_inputs), gradients_of(loss, parameters)};
      },
      options);
}

}  // namespace aloft
