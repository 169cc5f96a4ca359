// Language modelling: from tokens to the ones that follow.
#pragma once

#include "tasks/task.h"

namespace aloft {

// Columns: "tokens" and "targets", i32 [context] each; targets of -100 do not count. Where the data
// says "weights", a third column of that name, f32 [], the same in each row: what the batch's mean
// counts among the micro-batches of a step (data/sequence_examples.h). Measures: perplexity, and
// bits per byte where the bytes of a target are known.
class LanguageModel : public Task {
 public:
  // Of a model of its own.
  explicit LanguageModel(std::unique_ptr<models::CausalLm> model) : model_(std::move(model)) {}
  nn::Layer& model() override { return *model_; }
  // UserError E0215, at the first, where the model's logits are not of its vocab().
  Tensor loss(const std::vector<Tensor>& columns) const override;
  std::vector<Measure> measures(double loss, const std::vector<double>& means,
                                std::optional<double> bytes_a_target) const override;
  models::CausalLm* writer() override { return model_.get(); }

 private:
  Tensor mean_loss(const std::vector<Tensor>& columns) const;

  std::unique_ptr<models::CausalLm> model_;
  mutable bool has_checked_ = false;
};

}  // namespace aloft
