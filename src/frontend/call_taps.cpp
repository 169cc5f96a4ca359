#include "frontend/call_taps.h"

#include <utility>

#include "passes/tap_pattern.h"

namespace aloft {

namespace {
thread_local CallTaps* innermost = nullptr;
}  // namespace

CallTaps::CallTaps(const std::vector<AskedCalls>& asked, Saw saw)
    : saw_(std::move(saw)), outer_(std::exchange(innermost, this)) {
  for (const AskedCalls& calls : asked) {
    Asked& own = asked_.emplace_back(Asked{calls, {}});
    if (calls.model)
      for (const nn::Module* m : calls.model->modules()) own.modules.insert(m);
  }
}

CallTaps::~CallTaps() { innermost = outer_; }

bool CallTaps::is_there() { return innermost != nullptr; }

void CallTaps::see(const nn::Module& module, const Tensor& x, const Tensor& y) {
  if (innermost) innermost->note(module, x, y);
}

void CallTaps::note(const nn::Module& module, const Tensor& x, const Tensor& y) {
  const std::string& path = module.path();
  for (Asked& own : asked_) {
    if (own.calls.model && !own.modules.contains(&module)) continue;
    if (own.calls.wanted && !own.calls.wanted(path)) continue;
    const int call = own.so_far[path]++;
    saw_(module, own.calls.prefix + call_tap(path, call, "input"), x);
    saw_(module, own.calls.prefix + call_tap(path, call, "output"), y);
  }
}

}  // namespace aloft
