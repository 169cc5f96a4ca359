// A stack of dense layers with an activation between: the smallest model there is, a program's own
// or a family of recipes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/family.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "ops/activation.h"

namespace aloft::models {

// The activations that a recipe may name: ops of these names.
std::vector<std::string_view> mlp_activations();

// The sizes of an Mlp as a recipe says them.
struct MlpConfig {
  std::vector<std::int64_t> hidden = {256};  // features between the layers; none: one layer
  std::string activation = "relu";           // of mlp_activations()
  std::int64_t features = 784;               // of an example
  std::int64_t classes = 10;                 // logits of an example, or its numbers
  double dropout = 0;                        // behind each activation
  friend bool operator==(const MlpConfig&, const MlpConfig&) = default;

  // Its settings: keys of a recipe.
  template <class C = MlpConfig>
  static auto fields() {
    return FieldList{
        setting("hidden", &C::hidden, {1, 1 << 20}, "features between the layers; []: one layer"),
        setting("activation", &C::activation, {.words = mlp_activations()}, "between the layers"),
        setting("dropout", &C::dropout, {0, 0.99}, "probability, behind each activation",
                {.may_change = true, .resumed = kOtherDropout}),
        setting("features", &C::features, {1, 1 << 24}, "of an example; 0: the data's",
                {.is_of_data = true}),
        setting("classes", &C::classes, {1, 1 << 24}, "logits, or numbers; 0: the data's",
                {.is_of_data = true, .may_exceed = true})};
  }
};

// Linear layers, named 0, 1, ..., with `activation` between them and not behind the last.
class Mlp : public Classifier {
 public:
  // widths {784, 512, 10}: two layers. UserError E0210 unless there are two or more, all positive.
  explicit Mlp(const std::vector<std::int64_t>& widths, Tensor (*activation)(Operand) = gelu);
  // UserError E0210: sizes out of range, an activation that is not there.
  explicit Mlp(const MlpConfig& config);

  std::int64_t classes() const override { return classes_; }
  Tensor operator()(Operand x) const override;  // [B, widths.front()] -> [B, widths.back()]

 private:
  Mlp(const std::vector<std::int64_t>& widths, Tensor (*activation)(Operand), double dropout);

  Tensor (*activation_)(Operand);
  nn::Dropout drop_;
  std::int64_t classes_ = 0;
  std::vector<std::unique_ptr<nn::Linear>> layers_;
};

}  // namespace aloft::models
