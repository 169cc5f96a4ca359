// Regression: from features to numbers.
#pragma once

#include "tasks/task.h"

namespace aloft {

// Columns: "features", as of Classification, and "targets", f32 [classes]: a model's logits are the
// numbers. The loss is the mean squared error. Measures: its root.
class Regression : public Task {
 public:
  // Of a model of its own.
  explicit Regression(std::unique_ptr<models::Classifier> model) : model_(std::move(model)) {}
  nn::Layer& model() override { return *model_; }
  Tensor loss(const std::vector<Tensor>& columns) const override;
  std::vector<Measure> measures(double loss, const std::vector<double>& means,
                                std::optional<double> bytes_a_target) const override;

 private:
  std::unique_ptr<models::Classifier> model_;
};

}  // namespace aloft
