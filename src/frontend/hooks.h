// Hooks: functions of yours that see a value on its way, and may give another in its place. On
// modules they are registered by nn::Module (frontend/module.h), here on gradients:
//
//   Hook h = on_gradient(hidden, [](const Tensor& g) { return clamp(g, -1, 1); });
//   Hook w = on_gradient(model.up.weight, [](const Tensor& g) { seen = g; });
//   ...
//   h.remove();
//
// A hook that returns nothing, or an undefined tensor, only looks. What it returns has the type and
// shape of what it was given (UserError E0334); where a precision policy says of what types ops
// are, a float is cast to that of the one given. Several on one value run in the order in which
// they were registered, each on what the one before it gave; gradients come in the order of the
// backward pass, the last op's first.
//
// In a compiled function a hook is traced: it runs while the function is, and the ops that it calls
// are part of the program, in every call. Values cannot be read there (E0301). Hooks on modules and
// parameters that come or go later have the function compiled once more. A hook of a gradient may
// compute, but not take gradients: backward() and minimize() are E0334. docs/hooks.md has more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontend/assigned.h"
#include "graph/tensor.h"
#include "types/variable.h"

namespace aloft {

// Inside: a hook, in the list of what it is on. `look` is given what it sees last, and returns what
// stands for that from then on; undefined: it stays.
struct HookEntry {
  std::function<Tensor(std::span<const Tensor>)> look;
  std::string on;  // "the output of 'up'", for messages
  std::uint64_t number = 0;
  std::uint64_t runs = 0;
  bool is_there = true;
  // What programs are traced under: a number for the set of hooks that are there. Null: none asks.
  std::shared_ptr<std::uint64_t> known = nullptr;
};
using HookList = std::vector<std::shared_ptr<HookEntry>>;

// A hook that was registered. It stays when this handle goes; copies are one.
class Hook {
 public:
  Hook() = default;  // none
  // Inside: as those who register make it.
  explicit Hook(const std::shared_ptr<HookEntry>& entry) : entry_(entry) {}

  // It does not run any more, but in programs that were traced with it on a tensor of theirs. A
  // second time, or where what it was on has gone, does nothing.
  void remove();
  // Whether it is registered still.
  bool is_there() const;
  // How often it has run; in a compiled function, how often it was traced.
  std::uint64_t runs() const;

 private:
  std::weak_ptr<HookEntry> entry_;
};

namespace hooks {
// Inside: a hook of yours as a HookEntry has it; `count` tensors, the last of those that it sees.
template <std::size_t count, class F>
std::function<Tensor(std::span<const Tensor>)> looking(F f, std::string_view taker) {
  need_assigned(f, taker);
  return [f = std::move(f)](std::span<const Tensor> seen) mutable {
    return [&]<std::size_t... I>(std::index_sequence<I...>)->Tensor {
      if constexpr (std::is_void_v<decltype(f(seen[I]...))>) {
        f(seen[I]...);
        return {};
      } else {
        return f(seen[I]...);
      }
    }
    (std::make_index_sequence<count>{});
  };
}
// Inside: adds an entry; it counts in `known`, where given. UserError E0334 where it would stay
// beyond the function that is being traced.
Hook add(HookList& list, HookEntry entry, std::shared_ptr<std::uint64_t> known);
Hook add_to_gradient(const Tensor& t, HookEntry entry);
Hook add_to_gradient(const VariablePtr& parameter, HookEntry entry);
// Inside: what the hooks make of the last of `seen`.
Tensor run(const HookList& list, std::vector<Tensor> seen);
// The same of a gradient: of the emitter's value that has these hooks; of a parameter.
Tensor run_on_gradient(const HookList& list, const Tensor& gradient);
Tensor run_on_gradient(const VariablePtr& parameter, const Tensor& gradient);
// Tells a trace in progress that gradients of parameters are asked for, which may have hooks.
void ask_parameters();
// UserError E0334 within a hook of a gradient.
void need_outside(std::string_view call);
}  // namespace hooks

// f(gradient) runs when the gradient of t is complete, in every backward pass that reaches it;
// t may be what an op gave, eagerly or in a function that is being traced, or come from host
// memory. With a loss scale the gradient is that of the scaled loss. UserError E0302 where t or f
// was never assigned, E0311 where t is not floating point.
template <class F>
Hook on_gradient(const Tensor& t, F f) {
  return hooks::add_to_gradient(t, {hooks::looking<1>(std::move(f), "on_gradient()")});
}

// The same of a parameter: the gradient that backward() leaves for it, or that an optimizer's step
// or a micro-batch takes, over all uses of it. UserError E0325 where there is none, E0302 where f
// was never assigned, E0334 in a function that is being traced.
template <class F>
Hook on_gradient(const VariablePtr& parameter, F f) {
  return hooks::add_to_gradient(parameter, {hooks::looking<1>(std::move(f), "on_gradient()")});
}

}  // namespace aloft
