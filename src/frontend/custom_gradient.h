// custom_gradient: a function with a backward pass of your own, as torch.autograd.Function has it,
// JAX's custom_vjp and a bprop of MindSpore.
//
//   auto rounded = custom_gradient(
//       [](const Tensor& x) { return round(x * 8) / 8; },
//       [](const Tensor& gradient, const Tensor&) { return gradient; });  // as if it did not round
//   loss = mean(square(rounded(model(x)) - y));
//
// In both modes: in a compiled function both are traced. Under a precision policy both run in the
// types of the place where the function is called; custom_fwd(custom_gradient(...), DType::F32) has
// both in f32.
#pragma once

#include <functional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontend/assigned.h"
#include "graph/tensor.h"

namespace aloft {

namespace gradient_of_yours {
// Inside: the functions, whatever they take and give.
using Forward = std::function<Tensor(std::span<const Tensor> x)>;
using Backward =
    std::function<std::vector<Tensor>(const Tensor& gradient, std::span<const Tensor>)>;
// Inside: forward's result, which leads back by `backward`.
Tensor apply(const Forward& forward, const Backward& backward, std::vector<Tensor> x);

// Inside: what a backward function gives, as a list.
inline std::vector<Tensor> as_list(Tensor one) { return {std::move(one)}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> all) { return all; }
template <class... T>
std::vector<Tensor> as_list(const std::tuple<T...>& all) {
  return std::apply([](const auto&... each) { return std::vector<Tensor>{each...}; }, all);
}
template <class A, class B>
std::vector<Tensor> as_list(const std::pair<A, B>& both) {
  return {both.first, both.second};
}

// Inside: f of the tensors of a list.
template <std::size_t... I, class F, class... First>
auto call(std::index_sequence<I...>, const F& f, std::span<const Tensor> x, const First&... first) {
  return f(first..., x[I]...);
}
}  // namespace gradient_of_yours

// `forward` takes one tensor or several and gives one; no gradient passes what it computes.
// `backward` is given the gradient of the result, of its type and shape, and behind it what forward
// was given, and gives the gradient of each of them, in that order: a tensor, a pair, a tuple or a
// vector. One that is undefined is none, as for what is no float. A gradient is cast to the type of
// what it is of. What backward computes from what forward was given can be differentiated again.
// UserError E0302 where a function was never assigned, E0334 where what backward gives has another
// length or shape.
template <class F, class B>
auto custom_gradient(F forward, B backward) {
  need_assigned(forward, "custom_gradient()");
  need_assigned(backward, "custom_gradient()");
  return [forward = std::move(forward), backward = std::move(backward)](const auto&... x) {
    constexpr auto all = std::index_sequence_for<decltype(x)...>{};
    return gradient_of_yours::apply(
        [&](std::span<const Tensor> given) -> Tensor {
          return gradient_of_yours::call(all, forward, given);
        },
        [all, backward](const Tensor& gradient, std::span<const Tensor> given) {
          return gradient_of_yours::as_list(
              gradient_of_yours::call(all, backward, given, gradient));
        },
        {Tensor(x)...});
  };
}

}  // namespace aloft
