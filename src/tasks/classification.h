// Classification: from features to one of several classes.
#pragma once

#include "tasks/task.h"

namespace aloft {

// Columns: "features", f32 of an image [channels, height, width] or of a line [features], or of a
// text "tokens" and "types", i32 [length], and "lengths", i32 []; and "labels", i32 []. The loss is
// cross-entropy. Measures: accuracy, the share of examples whose likeliest class is the label.
class Classification : public Task {
 public:
  // Of a model of its own.
  explicit Classification(std::unique_ptr<models::Classifier> model) : model_(std::move(model)) {}
  nn::Layer& model() override { return *model_; }
  Tensor loss(const std::vector<Tensor>& columns) const override;
  Named evaluate(const std::vector<Tensor>& columns) const override;
  std::vector<Measure> measures(double loss, const std::vector<double>& means,
                                std::optional<double> bytes_a_target) const override;

 private:
  std::unique_ptr<models::Classifier> model_;
};

}  // namespace aloft
