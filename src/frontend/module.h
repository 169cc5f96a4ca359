// Module: a tree of named parameters and buffers. Modules are built once, never copied or moved
// (children know their parent); calling one is ordinary C++.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/hooks.h"
#include "graph/tensor.h"
#include "precision/policy.h"
#include "types/variable.h"

namespace aloft::nn {

// What models and layers are made of: derive from it (or from nn::Layer), take parent and name in
// the constructor, and have children and parameters as members.
class Module {
 public:
  Module() = default;  // a root
  // A child. Every parameter and buffer of a model has a full name of its own, which a checkpoint
  // can hold: UserError E0701 where a name is empty, "__metadata__", not UTF-8 or has a control
  // character; where the module has it already, for whatever; or where one is the other's beginning
  // up to a dot, as "a" is of "a.b".
  Module(Module& parent, std::string_view name);
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& path() const { return path_; }  // from the root, such as "h.3.attn"
  const std::string& name() const { return name_; }  // its own, such as "attn"

  // What its class is called, such as "Linear": for messages, and for lists of layers
  // (mindspore/mixed_precision.h). Empty of a class that does not say.
  virtual std::string_view kind() const { return {}; }

  // Names below its own path that its calls give to parts of what they compute, without a module
  // for them (ModuleScope): layers of a precision recipe, too.
  virtual std::vector<std::string> inner_layers() const { return {}; }

  // Parameters and buffers of this module and below, in order of construction.
  std::vector<VariablePtr> parameters() const;
  std::vector<VariablePtr> buffers() const;
  VariablePtr parameter(std::string_view full_name) const;  // null where there is none

  // This module and those below, each before its children, in order of construction.
  std::vector<Module*> modules();
  // The one below whose path from here is this, such as "h.3.attn"; null where there is none.
  Module* find(std::string_view path);

  // Train mode (dropout, batch statistics) or evaluation mode, for this module and below. A
  // compiled function that depends on it has a program for each.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;
  // From the next step on (un)freezes parameters of such names (h.*.attn.*). UserError E0809 where
  // none is.
  void requires_grad(bool on, std::string_view pattern = "*");

  // Hooks (frontend/hooks.h) on calls of this module, in both modes: f(x) sees, and may replace,
  // what it is called with; f(x, y) what it gives for x; f(gradient) the gradient of what it gives.
  // Of a module with several arguments x is the first. Layers here run them, but for
  // models::Decoder's loss(); a class of your own does where its operator() goes through call().
  // UserError E0302 where f was never assigned, E0334 in a function that is being traced.
  template <class F>
  Hook on_input(F f) {
    return add_hook(&Hooks::input, "the input of ", hooks::looking<1>(std::move(f), "on_input()"));
  }
  template <class F>
  Hook on_output(F f) {
    return add_hook(&Hooks::output, "the output of ",
                    hooks::looking<2>(std::move(f), "on_output()"));
  }
  template <class F>
  Hook on_output_gradient(F f) {
    return add_hook(&Hooks::gradient, "the gradient of the output of ",
                    hooks::looking<1>(std::move(f), "on_output_gradient()"));
  }

  // Drops the gradients that backward() left for its parameters; a compiled function does so in
  // each call.
  void zero_grad();

  // The precision recipe that governs this module's ops; set by amp::initialize.
  void set_policy(Policy policy);
  Policy policy() const;
  // Those of the modules below that have one of their own, by path.
  std::map<std::string, Policy> policies_below() const;

 protected:
  using Fill = std::function<void(float* values, std::int64_t count)>;
  // Creates a fp32 variable "path.name", filled at once. UserError E0701 as for a child, E0302
  // where `fill` was never assigned, E0306 for a symbolic length.
  VariablePtr add_parameter(std::string_view name, const Shape& shape, const Fill& fill,
                            bool is_norm = false);
  VariablePtr add_buffer(std::string_view name, const Shape& shape, float value);
  // A call of this module with x, by which its ops stand at its path and its hooks run:
  //
  //   Tensor operator()(Operand x) const {
  //     return call(x, [&](const Tensor& t) { return down(gelu(up(t))); });
  //   }
  template <class Body>
  Tensor call(const Operand& x, const Body& body) const {
    ModuleScope scope(name(), x.loc, policy());
    if (!has_hooks()) return body(x.tensor);
    const Tensor in = seen_input(x.tensor);
    return seen_output(in, body(in));
  }
  // The variable's value in the current program.
  static Tensor use(const VariablePtr& variable) { return current_emitter().state(variable); }
  std::string full_name(std::string_view name) const;

 private:
  std::string name_, path_;
  Module* parent_ = nullptr;
  std::vector<Module*> children_;  // in order of construction
  std::vector<VariablePtr> own_;
  // What calls of this module depend on. Programs that were traced under it know it beyond the
  // module's life.
  struct Mode {
    bool training = true;
    Policy policy;
  };
  std::shared_ptr<Mode> mode_ = std::make_shared<Mode>();
  struct Hooks {
    HookList input, output, gradient;
  };
  std::unique_ptr<Hooks> hooks_;  // null until there is one
  // Of the whole model: a number for the set of its hooks.
  std::shared_ptr<std::uint64_t> known_hooks_ = std::make_shared<std::uint64_t>(0);

  bool has_hooks() const;
  Hook add_hook(HookList Hooks::*list, std::string_view on,
                std::function<Tensor(std::span<const Tensor>)> look);
  Tensor seen_input(const Tensor& x) const;
  Tensor seen_output(const Tensor& x, const Tensor& y) const;
  Tensor hooked_output(const Tensor& x, const Tensor& y) const;

  void check_name(std::string_view name) const;
  VariablePtr new_variable(std::string_view name, const Shape& shape, StateClass cls) const;
  void collect(StateClass cls, std::vector<VariablePtr>& into) const;
};

// Inside: memory of its own for a variable, zero-filled; none where it is only described
// (description.h).
void allocate(Variable& variable);

}  // namespace aloft::nn
