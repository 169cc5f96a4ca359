#include "frontend/call_taps.h"

#include "passes/tap_pattern.h"

namespace aloft {

CallTaps::CallTaps(nn::Module& model, std::string prefix,
                   const std::function<bool(const std::string&)>& wanted)
    : prefix_(std::move(prefix)) {
  for (nn::Module* m : model.modules()) {
    if (wanted && !wanted(m->path())) continue;
    hooks_.push_back(m->on_output([this, path = m->path()](const Tensor& x, const Tensor& y) {
      const int call = calls_[path]++;
      seen_.emplace_back(call_tap(path, call, "input"), x.id());
      seen_.emplace_back(call_tap(path, call, "output"), y.id());
    }));
  }
}

CallTaps::~CallTaps() {
  for (Hook& hook : hooks_) hook.remove();
}

void CallTaps::mark(Graph& graph) const {
  for (const auto& [name, value] : seen_) {
    if (graph.node(value.node).erased || !is_float(graph.type(value).dtype)) continue;
    graph.set_output(Name(prefix_ + name), value, OutputKind::Tap);
  }
}

}  // namespace aloft
