// Several answers: of each of a model's labels, whether it holds for an example.
#pragma once

#include "tasks/task.h"

namespace aloft {

// Columns: "features", as of Classification, and "targets", f32 [classes]: 1 where a label holds, 0
// where it does not, or a probability between. The loss is the binary cross-entropy, the mean over
// labels. Measures: accuracy, the share of labels that are told right, where more likely than not
// is told as 1.
class MultiLabel : public Task {
 public:
  // Of a model of its own.
  explicit MultiLabel(std::unique_ptr<models::Classifier> model) : model_(std::move(model)) {}
  nn::Layer& model() override { return *model_; }
  Tensor loss(const std::vector<Tensor>& columns) const override;
  Named evaluate(const std::vector<Tensor>& columns) const override;
  std::vector<Measure> measures(double loss, const std::vector<double>& means,
                                std::optional<double> bytes_a_target) const override;

 private:
  std::unique_ptr<models::Classifier> model_;
};

}  // namespace aloft
