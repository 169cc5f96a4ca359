#include "nn/update_bn.h"

#include <span>

#include "base/error.h"
#include "frontend/eager_emitter.h"
#include "runtime/buffer.h"

namespace aloft {
namespace {

thread_local StatisticsPass* current = nullptr;

}  // namespace

StatisticsPass::StatisticsPass(nn::Module& model)
    : model_(model), was_training_(model.is_training()), outer_(current) {
  for (const VariablePtr& v : model.buffers()) sums_[v];
  model.train();
  current = this;
}

StatisticsPass::~StatisticsPass() {
  current = outer_;
  model_.train(was_training_);
}

StatisticsPass* StatisticsPass::of(const VariablePtr& running) {
  return current && current->sums_.contains(running) ? current : nullptr;
}

void StatisticsPass::add(const VariablePtr& running, const Tensor& of_batch) {
  const std::vector<double> numbers = of_batch.to_vector();
  Sum& sum = sums_.at(running);
  sum.of_batches.resize(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) sum.of_batches[i] += numbers[i];
  ++sum.batches;
}

void StatisticsPass::take() {
  for (const auto& [running, sum] : sums_) {
    if (sum.batches == 0) continue;
    std::vector<float> means;
    for (const double s : sum.of_batches)
      means.push_back(static_cast<float>(s / static_cast<double>(sum.batches)));
    eager().let_go_of(*running);
    running->buffer->write_from(std::as_bytes(std::span(means)));
  }
}

void refuse_pass_without_batch() {
  throw UserError("E0530", "the statistics of a pass without a batch are none")
      .need("data with a batch or more");
}

}  // namespace aloft
