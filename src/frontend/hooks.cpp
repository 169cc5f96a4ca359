#include "frontend/hooks.h"

#include <atomic>
#include <map>
#include <mutex>

#include "base/error.h"
#include "frontend/premises.h"
#include "frontend/variable_values.h"
#include "graph/value_notes.h"
#include "ops/cast.h"

namespace aloft {

namespace {

// Gives a set of hooks a number, by exclusive or: the set without one has the number of before.
std::uint64_t number_in_set(const HookEntry& entry) {
  std::uint64_t x = entry.number * 0x9e3779b97f4a7c15u;  // splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

// Those of parameters, which know nothing of hooks.
struct OfParameters {
  std::mutex mutex;
  std::map<std::weak_ptr<Variable>, HookList, std::owner_less<>> lists;
  std::atomic<bool> any = false;
  std::shared_ptr<std::uint64_t> known = std::make_shared<std::uint64_t>(0);
};

OfParameters& of_parameters() {
  static OfParameters& all = *new OfParameters;
  return all;
}

thread_local int within_gradient_hooks = 0;

class WithinGradientHook {
 public:
  WithinGradientHook() { ++within_gradient_hooks; }
  ~WithinGradientHook() { --within_gradient_hooks; }
  WithinGradientHook(const WithinGradientHook&) = delete;
  WithinGradientHook& operator=(const WithinGradientHook&) = delete;
};

// What stands for `given` from here on. Under a precision policy, which says of what type ops
// store what they compute, a float is stored as the one that it replaces.
Tensor replacing(const HookEntry& hook, const Tensor& given, const Tensor& returned) {
  if (returned.emitter() != given.emitter())
    throw UserError("E0334", "a hook on " + hook.on + " returns a tensor of another program")
        .saw("a " + returned.type().str() + " that was not computed where the hook ran")
        .need("a tensor computed from what the hook was given, or by ops that it calls");
  const TensorType type = returned.type(), need = given.type();
  if (type == need) return returned;
  const bool are_floats = is_float(type.dtype) && is_float(need.dtype);
  if (are_floats && type.shape == need.shape && current_where().policy)
    return cast(returned, need.dtype);
  throw UserError("E0334", "a hook on " + hook.on + " returns another type or shape")
      .saw(type.str())
      .need(need.str() + ", as it was given")
      .advice("cast() or reshape() what the hook returns");
}

}  // namespace

void Hook::remove() {
  const auto entry = entry_.lock();
  if (!entry || !entry->is_there) return;
  entry->is_there = false;
  if (entry->known) *entry->known ^= number_in_set(*entry);
}

bool Hook::is_there() const {
  const auto entry = entry_.lock();
  return entry && entry->is_there;
}

std::uint64_t Hook::runs() const {
  const auto entry = entry_.lock();
  return entry ? entry->runs : 0;
}

namespace hooks {

Hook add(HookList& list, HookEntry entry, std::shared_ptr<std::uint64_t> known) {
  if (known && premises_of_trace())
    throw UserError("E0334", "a hook on " + entry.on + " is registered while a function is traced")
        .need("hooks on modules and parameters from outside of compiled functions: they stay")
        .advice("register it before; a tensor of the function may have one, on_gradient(t, f)");
  std::erase_if(list, [](const auto& e) { return !e->is_there; });
  entry.number = next_number();
  entry.known = std::move(known);
  if (entry.known) *entry.known ^= number_in_set(entry);
  return Hook(list.emplace_back(std::make_shared<HookEntry>(std::move(entry))));
}

Hook add_to_gradient(const Tensor& t, HookEntry entry) {
  Emitter& emitter = emitter_of(t);
  if (!is_float(t.dtype()))
    throw UserError("E0311", "only a floating-point tensor has a gradient to hook")
        .saw(t.type().str());
  if (entry.on.empty()) entry.on = "the gradient of a " + t.type().str();
  return add(emitter.notes(t).hooks, std::move(entry), nullptr);
}

Hook add_to_gradient(const VariablePtr& parameter, HookEntry entry) {
  if (!parameter) throw no_variable("a hook is to see the gradient of no parameter");
  entry.on = "the gradient of '" + parameter->name.str() + "'";
  OfParameters& all = of_parameters();
  const std::scoped_lock lock(all.mutex);
  std::erase_if(all.lists, [](const auto& of) { return of.first.expired(); });
  all.any = true;
  return add(all.lists[parameter], std::move(entry), all.known);
}

Tensor run(const HookList& list, std::vector<Tensor> seen) {
  const HookList now = list;  // a hook may add and remove some
  for (const auto& hook : now) {
    if (!hook->is_there) continue;
    ++hook->runs;
    const Tensor returned = hook->look(seen);
    if (!returned.is_defined()) continue;
    seen.back() = replacing(*hook, seen.back(), returned);
  }
  return seen.back();
}

Tensor run_on_gradient(const HookList& list, const Tensor& gradient) {
  const WithinGradientHook within;
  return run(list, {gradient});
}

Tensor run_on_gradient(const VariablePtr& parameter, const Tensor& gradient) {
  OfParameters& all = of_parameters();
  if (!all.any) return gradient;
  HookList list;
  {
    const std::scoped_lock lock(all.mutex);
    const auto it = all.lists.find(parameter);
    if (it == all.lists.end()) return gradient;
    list = it->second;
  }
  return run_on_gradient(list, gradient);
}

void ask_parameters() {
  if (Premises* p = premises_of_trace())
    p->found(std::shared_ptr<const std::uint64_t>(of_parameters().known));
}

void need_outside(std::string_view call) {
  if (within_gradient_hooks > 0)
    throw UserError("E0334", std::string(call) + " is called within a hook of a gradient")
        .need("a hook that computes with the gradient it is given")
        .advice("keep the tensor, and call it behind the backward pass");
}

}  // namespace hooks
}  // namespace aloft
