// torch.optim.swa_utils.update_bn: running statistics anew, for weights that they were not taken
// with, such as means of weights (frontend/averaged_weights.h).
//
//   {
//     const AveragedWeights means(optimizer, model);
//     update_bn(loader, net);
//     ...                       // evaluate, models::save_state()
//   }                           // weights and statistics are what they were
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <tuple>
#include <type_traits>
#include <vector>

#include "frontend/module.h"
#include "graph/scope.h"

namespace aloft {

// Inside: while one lives, its model is in training mode, and batch norms of the model that are
// called on this thread tell it their batch's statistics and leave their running ones alone.
class StatisticsPass {
 public:
  explicit StatisticsPass(nn::Module& model);
  ~StatisticsPass();  // the mode is what it was
  StatisticsPass(const StatisticsPass&) = delete;
  StatisticsPass& operator=(const StatisticsPass&) = delete;

  // The one that is to be told of a running statistic; null where none is.
  static StatisticsPass* of(const VariablePtr& running);
  // The same statistic of a batch, f32.
  void add(const VariablePtr& running, const Tensor& of_batch);
  // The running ones become the means of those that were told.
  void take();

 private:
  struct Sum {
    std::vector<double> of_batches = {};  // empty: none was told
    std::int64_t batches = 0;
  };
  nn::Module& model_;
  bool was_training_;
  StatisticsPass* outer_;
  std::map<VariablePtr, Sum> sums_;  // of each buffer of the model
};

// Inside: UserError E0530, of data without a batch.
[[noreturn]] void refuse_pass_without_batch();

// A pass over the data with net(x), `net` a model or what amp::initialize gave for it, op by op and
// without gradients: each BatchNorm2d's running statistics become the plain means of those of the
// batches, as there. The data is anything that a range-based for takes x, or {x, ...}, from.
// UserError E0530 for data without a batch; where that or the model throws, the statistics are what
// they were.
template <class D, class N>
void update_bn(D& data, N& net) {
  const auto module = [&]() -> nn::Module& {
    if constexpr (std::derived_from<N, nn::Module>)
      return net;
    else
      return net.model();
  };
  StatisticsPass pass(module());
  const NoGrad no_grad;
  bool has_batch = false;
  for (auto&& batch : data) {
    has_batch = true;
    if constexpr (std::is_convertible_v<decltype(batch), const Tensor&>)
      net(batch);
    else
      net(std::get<0>(batch));
  }
  if (!has_batch) refuse_pass_without_batch();
  pass.take();
}

}  // namespace aloft
