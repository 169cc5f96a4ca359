// Inside: which loss scales a loss is multiplied with, so that its gradients are not divided by
// others, or by one of them too few.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "autodiff/history.h"
#include "graph/graph.h"
#include "types/variable.h"

namespace aloft {

// Of a loss with this history: each scale once, or twice where a value that it was multiplied with
// was multiplied with it again. `values`: the nodes that read loss scales. What gradients of
// gradients were computed by on their way back counts for nothing: a loop may have divided them.
std::vector<VariablePtr> loss_scales_on(const Graph& graph, const History& history, ValueId target,
                                        const std::map<std::uint32_t, VariablePtr>& values);

// Notes at gradients which scales these are, and `own` besides, where it is one and they are some.
void note_loss_scales(const std::vector<Tensor>& gradients, std::vector<VariablePtr> scales,
                      const VariablePtr& own = nullptr);
// What was noted at a gradient; nothing of what a loop has computed from it.
std::vector<VariablePtr> noted_loss_scales(const Tensor& gradient);

// While one lives, this thread's innermost trace notes here what gradients of the trace have.
class TracedLossScales {
 public:
  TracedLossScales();
  ~TracedLossScales();
  TracedLossScales(const TracedLossScales&) = delete;
  TracedLossScales& operator=(const TracedLossScales&) = delete;

 private:
  friend void note_loss_scales(const std::vector<Tensor>&, std::vector<VariablePtr>,
                               const VariablePtr&);
  friend std::vector<VariablePtr> noted_loss_scales(const Tensor&);
  std::map<ValueId, std::vector<VariablePtr>> of_;
  TracedLossScales* saved_;
};

// While one lives, variable_gradients() says here which loss scales its target is multiplied with.
class LossScalesMet {
 public:
  LossScalesMet();
  ~LossScalesMet();
  LossScalesMet(const LossScalesMet&) = delete;
  LossScalesMet& operator=(const LossScalesMet&) = delete;
  // As of the last call of variable_gradients().
  const std::vector<VariablePtr>& met() const { return met_; }
  // Told by emitters; nothing where nobody asks.
  static void tell(std::vector<VariablePtr> scales);
  static bool is_asked();

 private:
  std::vector<VariablePtr> met_;
  LossScalesMet* saved_;
};

}  // namespace aloft
