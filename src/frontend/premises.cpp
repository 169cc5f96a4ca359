#include "frontend/premises.h"

#include <algorithm>

#include "frontend/random.h"
#include "graph/scope.h"

namespace aloft {
namespace {
thread_local Premises* innermost = nullptr;

template <class T>
bool is_still(const void* at, std::uint64_t was) {
  T now, then;
  std::memcpy(&now, at, sizeof(T));
  std::memcpy(&then, &was, sizeof(T));
  return now == then;
}
}  // namespace

Premises::Premises()
    : path_(current_where().path),
      policy_(current_where().policy),
      has_gradients_(grad_enabled()) {}

void Premises::add(std::shared_ptr<const void> at, const void* value, std::size_t bytes) {
  if (std::find(own_.begin(), own_.end(), at.get()) != own_.end() || has_found(at.get())) return;
  Fact fact{std::move(at), 0, bytes};
  std::memcpy(&fact.was, value, bytes);
  facts_.push_back(std::move(fact));
}

void Premises::found_none(std::shared_ptr<const VariablePtr> at) {
  const VariablePtr* const variable = at.get();
  add(std::move(at), variable, 0);
}

bool Premises::has_found(const void* at) const {
  return std::any_of(facts_.begin(), facts_.end(), [&](const Fact& f) { return f.at.get() == at; });
}

void Premises::found_random_state() { random_state_ = random_state(); }

void Premises::remember(std::shared_ptr<void> at, std::size_t bytes) {
  own_.push_back(at.get());
  const auto is_known = [&](const Setting& s) { return s.at == at; };
  if (std::any_of(settings_.begin(), settings_.end(), is_known)) return;
  Setting setting{std::move(at), 0, bytes};
  std::memcpy(&setting.before, setting.at.get(), bytes);
  settings_.push_back(std::move(setting));
}

void Premises::restore() const {
  for (const Setting& s : settings_) std::memcpy(s.at.get(), &s.before, s.bytes);
}

bool Premises::hold() const {
  const Where& now = current_where();
  if (!(now.path == path_ && now.policy == policy_)) return false;
  // A trace under NoGrad does not know what a gradient of its results would miss.
  if (grad_enabled() ? !has_gradients_ : needs_gradients_) return false;
  if (random_state_ && random_state_ != random_state()) return false;
  return std::all_of(facts_.begin(), facts_.end(), [](const Fact& f) {
    if (f.bytes == 1) return is_still<std::uint8_t>(f.at.get(), f.was);
    if (f.bytes == 8) return is_still<std::uint64_t>(f.at.get(), f.was);
    return *static_cast<const VariablePtr*>(f.at.get()) == nullptr;
  });
}

Premises* premises_of_trace() { return innermost; }

PremisesScope::PremisesScope(Premises* premises) : saved_(innermost) { innermost = premises; }
PremisesScope::~PremisesScope() { innermost = saved_; }

}  // namespace aloft
