#include "frontend/host_count.h"

#include <utility>

namespace aloft {
namespace {
thread_local std::vector<HostCount>* collected = nullptr;
}

void count_on_host(HostCount count) {
  if (collected)
    collected->push_back(std::move(count));
  else
    count.at() = count.next(count.at());
}

HostCountScope::HostCountScope(std::vector<HostCount>* into) : saved_(collected) {
  collected = into;
}
HostCountScope::~HostCountScope() { collected = saved_; }

CountedRun::CountedRun(std::span<HostCount> counts) : counts_(counts) {
  try {
    for (HostCount& c : counts_) {
      const std::int32_t next = c.next(c.at());
      c.before = std::exchange(c.at(), next);
      ++done_;
    }
  } catch (...) {
    take_back();
    throw;
  }
}

void CountedRun::take_back() {
  for (; done_ > 0; --done_) counts_[done_ - 1].at() = counts_[done_ - 1].before;
}

}  // namespace aloft
