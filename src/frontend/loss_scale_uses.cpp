#include "frontend/loss_scale_uses.h"

#include <algorithm>
#include <utility>

#include "frontend/eager_emitter.h"

namespace aloft {
namespace {

thread_local LossScalesMet* asking = nullptr;
thread_local TracedLossScales* traced = nullptr;

// How often, on the way that has most of them, `target` was multiplied with one of `reads`.
int times(const Graph& graph, const History& history, ValueId target,
          const std::vector<std::uint32_t>& reads) {
  std::vector<bool> is_scale(graph.capacity(), false);
  std::vector<int> most(graph.capacity(), 0);
  for (std::uint32_t n : reads) is_scale[n] = true;
  for (std::uint32_t n : graph.order()) {
    const Node& node = graph.node(n);
    if (!history.holds(n) || node.where.phase == Phase::Backward) continue;
    bool has_scale = false;
    for (ValueId v : node.in) {
      has_scale = has_scale || is_scale[v.node];
      most[n] = std::max(most[n], most[v.node]);
    }
    if (has_scale && node.op == Name("cast"))
      is_scale[n] = true;
    else if (has_scale)
      ++most[n];
    if (n == target.node) break;
  }
  return most[target.node];
}

}  // namespace

std::vector<VariablePtr> loss_scales_on(const Graph& graph, const History& history, ValueId target,
                                        const std::map<std::uint32_t, VariablePtr>& values) {
  std::map<VariablePtr, std::vector<std::uint32_t>> reads;
  for (const auto& [n, variable] : values)
    if (history.holds(n)) reads[variable].push_back(n);
  std::vector<VariablePtr> all;
  for (const auto& [variable, nodes] : reads)
    all.insert(all.end(), times(graph, history, target, nodes) > 1 ? 2 : 1, variable);
  return all;
}

void note_loss_scales(const std::vector<Tensor>& gradients, std::vector<VariablePtr> scales,
                      const VariablePtr& own) {
  if (scales.empty()) return;
  if (own) scales.push_back(own);
  for (const Tensor& g : gradients)
    if (traced)
      traced->of_[g.id()] = scales;
    else
      eager().note_loss_scales(g, scales);
}

std::vector<VariablePtr> noted_loss_scales(const Tensor& gradient) {
  if (!traced) {
    const bool is_eager = gradient.emitter() == &eager() || gradient.emitter() == &eager_session();
    return is_eager ? eager().cell(gradient).loss_scales : std::vector<VariablePtr>();
  }
  const auto at = traced->of_.find(gradient.id());
  return at == traced->of_.end() ? std::vector<VariablePtr>() : at->second;
}

TracedLossScales::TracedLossScales() : saved_(std::exchange(traced, this)) {}
TracedLossScales::~TracedLossScales() { traced = saved_; }

LossScalesMet::LossScalesMet() : saved_(std::exchange(asking, this)) {}
LossScalesMet::~LossScalesMet() { asking = saved_; }
void LossScalesMet::tell(std::vector<VariablePtr> scales) {
  if (asking) asking->met_ = std::move(scales);
}
bool LossScalesMet::is_asked() { return asking != nullptr; }

}  // namespace aloft
