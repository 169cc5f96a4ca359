#include "frontend/host_count.h"

#include "frontend/eager_emitter.h"

namespace aloft {
namespace {
thread_local HostPart* collected = nullptr;
}

void count_on_host(HostCount count) {
  if (collected)
    collected->counts.push_back(std::move(count));
  else
    count.set(count.next(count.now()));
}

void forget_left_gradients(std::span<const VariablePtr> parameters) {
  if (collected)
    collected->forgotten.insert(collected->forgotten.end(), parameters.begin(), parameters.end());
  else
    eager().forget_gradients(parameters);
}

HostPartScope::HostPartScope(HostPart* into) : saved_(collected) { collected = into; }
HostPartScope::~HostPartScope() { collected = saved_; }

CountedRun::CountedRun(std::span<HostCount> counts) : counts_(counts) {
  try {
    for (HostCount& c : counts_) {
      const std::int32_t now = c.now();
      c.set(c.next(now));
      c.before = now;
      ++done_;
    }
  } catch (...) {
    take_back();
    throw;
  }
}

void CountedRun::take_back() {
  for (; done_ > 0; --done_) counts_[done_ - 1].set(counts_[done_ - 1].before);
}

}  // namespace aloft
