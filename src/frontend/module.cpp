#include "frontend/module.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "frontend/autocast.h"
#include "frontend/call_taps.h"
#include "frontend/description.h"
#include "frontend/host_count.h"
#include "frontend/premises.h"
#include "ops/identity.h"
#include "runtime/current_device.h"

namespace aloft::nn {

Module::Module(Module& parent, std::string_view name) : name_(name) {
  parent.check_name(name);
  path_ = parent.full_name(name);
  mode_->training = parent.mode_->training;
  known_hooks_ = parent.known_hooks_;
  parent_ = &parent;
  parent.children_.push_back(this);
}

// A child may go before its parent: where its own constructor throws, or a layer is replaced.
Module::~Module() {
  if (parent_) std::erase(parent_->children_, this);
  for (Module* child : children_) child->parent_ = nullptr;
}

std::string Module::full_name(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

namespace {
// Whether both could stand for one full name, with whatever follows.
bool can_meet(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (a.size() == b.size() || b[a.size()] == '.');
}
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
}  // namespace

void Module::check_name(std::string_view name) const {
  const bool can_be_saved = !name.empty() && name != "__metadata__" && is_utf8(name) &&
                            std::none_of(name.begin(), name.end(), is_control);
  if (!can_be_saved)
    throw UserError("E0701", "a part of a module has a name that no checkpoint can hold")
        .saw(in_quotes(full_name(name)))
        .need("one character or more, UTF-8, no control character, not __metadata__");
  const auto refuse_where_it_meets = [&](std::string_view other) {
    if (can_meet(name, other))
      throw UserError("E0701", "two parts of a module have one name, or may come to it")
          .saw(in_quotes(full_name(name)) + " beside " + in_quotes(full_name(other)))
          .need("names of which neither is the other, or its beginning up to a dot");
  };
  const std::size_t beginning = full_name("").size();
  for (const Module* child : children_) refuse_where_it_meets(child->name_);
  for (const VariablePtr& v : own_)
    refuse_where_it_meets(std::string_view(v->name.str()).substr(beginning));
}

void allocate(Variable& v) {
  v.buffer = nullptr;
  if (is_only_described()) return;
  const std::size_t bytes = std::max<std::size_t>(v.type.max_bytes(), 1);
  v.buffer = std::make_shared<Buffer>(current_device().allocate_zeroed(bytes));
}

VariablePtr Module::new_variable(std::string_view name, const Shape& shape, StateClass cls) const {
  check_name(name);
  if (!shape.is_constant())
    throw UserError("E0306", "a part of a module has a length without a value")
        .saw(in_quotes(full_name(name)) + " of " + shape.str())
        .need("lengths that are numbers");
  auto v = std::make_shared<Variable>();
  v->name = full_name(name);
  v->type = {DType::F32, shape};
  v->cls = cls;
  allocate(*v);
  return v;
}

VariablePtr Module::add_parameter(std::string_view name, const Shape& shape, const Fill& fill,
                                  bool is_norm) {
  if (!fill)
    throw UserError("E0302", "the values of a parameter are filled by no function")
        .saw("a function that was never assigned, for " + in_quotes(full_name(name)))
        .need("one that fills `count` values");
  const VariablePtr v = new_variable(name, shape, StateClass::Parameter);
  v->is_norm = is_norm;
  const auto count = static_cast<std::size_t>(shape.max_numel());
  if (v->buffer) fill(v->buffer->write<float>(0, count).data(), shape.max_numel());
  own_.push_back(v);
  return v;
}

VariablePtr Module::add_buffer(std::string_view name, const Shape& shape, float value) {
  const VariablePtr v = new_variable(name, shape, StateClass::Buffer);
  v->requires_grad = false;
  const auto count = static_cast<std::size_t>(shape.max_numel());
  if (v->buffer) std::ranges::fill(v->buffer->write<float>(0, count), value);
  own_.push_back(v);
  return v;
}

void Module::collect(StateClass cls, std::vector<VariablePtr>& into) const {
  for (const VariablePtr& v : own_)
    if (v->cls == cls) into.push_back(v);
  for (const Module* child : children_) child->collect(cls, into);
}

std::vector<VariablePtr> Module::parameters() const {
  std::vector<VariablePtr> all;
  collect(StateClass::Parameter, all);
  return all;
}

std::vector<VariablePtr> Module::buffers() const {
  std::vector<VariablePtr> all;
  collect(StateClass::Buffer, all);
  return all;
}

VariablePtr Module::parameter(std::string_view full) const {
  for (const VariablePtr& v : parameters())
    if (v->name.str() == full) return v;
  return nullptr;
}

std::vector<Module*> Module::modules() {
  std::vector<Module*> all = {this};
  for (Module* child : children_) {
    const std::vector<Module*> below = child->modules();
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

Module* Module::find(std::string_view path) {
  const std::string full = full_name(path);
  for (Module* m : modules())
    if (m != this && m->path_ == full) return m;
  return nullptr;
}

bool Module::is_training() const { return read_premise(mode_, mode_->training); }

// A part of a prepared model that is called by itself, or by a model whose operator() is no call(),
// has the model's precision, also in a block of autocast around it, unless another model's governs
// there or the block has taken casts back.
Policy Module::policy() const {
  Policy policy = read_premise(mode_, mode_->policy);
  if (policy || amp::casts_are_off()) return policy;
  if (current_where().policy && !amp::a_block_around_governs()) return policy;
  for (const Module* m = parent_; m && !policy; m = m->parent_)
    policy = read_premise(m->mode_, m->mode_->policy);
  return policy;
}

std::map<std::string, Policy> Module::policies_below() const {
  std::map<std::string, Policy> all;
  for (const Module* child : children_) {
    if (const Policy own = read_premise(child->mode_, child->mode_->policy))
      all[child->path()] = own;
    all.merge(child->policies_below());
  }
  return all;
}

bool Module::has_hooks() const {
  read_premise(known_hooks_, *known_hooks_);
  return hooks_ != nullptr || CallTaps::is_there();
}

Hook Module::add_hook(HookList Hooks::*list, std::string_view on,
                      std::function<Tensor(std::span<const Tensor>)> look) {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  return hooks::add(
      (*hooks_).*list,
      {std::move(look), std::string(on) + (path_.empty() ? "the model" : "'" + path_ + "'")},
      known_hooks_);
}

Tensor Module::seen_input(const Tensor& x) const {
  return hooks_ ? hooks::run(hooks_->input, {x}) : x;
}

Tensor Module::seen_output(const Tensor& x, const Tensor& y) const {
  const Tensor seen = hooks_ ? hooked_output(x, y) : y;
  CallTaps::see(*this, x, seen);
  return seen;
}

Tensor Module::hooked_output(const Tensor& x, const Tensor& y) const {
  Tensor seen = hooks::run(hooks_->output, {x, y});
  // What is given through, as by a Dropout in evaluation, is also somebody else's.
  const bool is_input = seen.id() == x.id() && !hooks_->gradient.empty();
  if (is_input) seen = identity(seen);
  for (const auto& hook : hooks_->gradient) {
    if (!hook->is_there) continue;
    // Counted where it is registered.
    const auto look = [hook](std::span<const Tensor> g) {
      if (!hook->is_there) return Tensor();
      ++hook->runs;
      return hook->look(g);
    };
    if (is_float(seen.dtype())) hooks::add_to_gradient(seen, {look, hook->on});
  }
  return seen;
}

void Module::set_policy(Policy policy) { set_premise(mode_, mode_->policy, policy); }

void Module::zero_grad() { forget_left_gradients(parameters()); }

void Module::train(bool on) {
  set_premise(mode_, mode_->training, on);
  for (Module* child : children_) child->train(on);
}

void Module::requires_grad(bool on, std::string_view pattern) {
  std::vector<std::string> names;
  bool matches = pattern == "*";  // a module without parameters may be frozen too
  for (const VariablePtr& v : parameters()) {
    names.push_back(v->name.str());
    if (!glob_match(pattern, names.back())) continue;
    matches = true;
    set_premise(v, v->requires_grad, on);
  }
  if (matches) return;
  UserError e("E0809", "a pattern of what is frozen or unfrozen matches no parameter");
  e.add_line("saw", "pattern " + in_quotes(pattern));
  e.add_line("need", "the name of a parameter, with * for any letters");
  const std::string near = nearest_name(pattern, names);
  if (!names.empty())
    e.add_line("try",
               "parameters here are named like " + in_quotes(near.empty() ? names[0] : near));
  throw e;
}

}  // namespace aloft::nn
