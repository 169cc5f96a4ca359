#include "frontend/premises.h"

#include <algorithm>

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

Premises::Premises() : path_(current_where().path), policy_(current_where().policy) {}

void Premises::add(std::shared_ptr<const void> at, const void* value, std::size_t bytes) {
  if (std::find(own_.begin(), own_.end(), at.get()) != own_.end() || has_found(at.get())) return;
  Fact fact{std::move(at), 0, bytes};
  std::memcpy(&fact.was, value, bytes);
  facts_.push_back(std::move(fact));
}

bool Premises::has_found(const void* at) const {
  return std::any_of(facts_.begin(), facts_.end(), [&](const Fact& f) { return f.at.get() == at; });
}

void Premises::sets(const void* at) { own_.push_back(at); }

bool Premises::hold() const {
  const Where& now = current_where();
  if (!(now.path == path_ && now.policy == policy_) || (needs_gradients_ && !grad_enabled()))
    return false;
  return std::all_of(facts_.begin(), facts_.end(), [](const Fact& f) {
    return f.bytes == 1 ? is_still<std::uint8_t>(f.at.get(), f.was)
                        : is_still<std::uint64_t>(f.at.get(), f.was);
  });
}

Premises* premises_of_trace() { return innermost; }

PremisesScope::PremisesScope(Premises* premises) : saved_(innermost) { innermost = premises; }
PremisesScope::~PremisesScope() { innermost = saved_; }

}  // namespace aloft
