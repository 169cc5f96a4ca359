// Losses and measures of the tasks on arrays, against their definitions written out in double.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "e2e/training.h"
#include "frontend/compile.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/losses.h"
#include "tasks/classification.h"
#include "tasks/multi_label.h"
#include "tasks/regression.h"

namespace aloft::e2e {
namespace {

// Gives back what it is called with: an example's features are its logits.
struct AsGiven : models::Classifier {
  std::int64_t classes() const override { return 3; }
  Tensor operator()(Operand x) const override {
    return call(x, [](const Tensor& t) { return t * 1.0; });
  }
};

const std::vector<double> kLogits = {2, -1, 0.5, -3, 0, 4};
const std::vector<double> kTargets = {1, 0, 0, 0, 0.75, 1};

Tensor rows(const std::vector<double>& values) {
  return from_floats({values.begin(), values.end()}, {2, 3});
}

class TaskValues : public testing::Test {
 protected:
  void SetUp() override { use_cpu(); }
  // The loss in training, eager and compiled, and what an evaluation says.
  template <class T>
  void expect(const Tensor& second, double loss, std::vector<double> means) {
    const T task(std::make_unique<AsGiven>());
    const std::vector<Tensor> columns{rows(kLogits), second};
    const double most = 1e-6 * std::abs(loss);
    EXPECT_NEAR(task.loss(columns).item(), loss, most);
    auto compiled = compile([&](const Tensor& x, const Tensor& y) { return task.loss({x, y}); });
    EXPECT_NEAR(compiled(columns[0], second).item(), loss, most);
    const Task::Named said = task.evaluate(columns);
    ASSERT_EQ(said.size(), 1 + means.size());
    EXPECT_NEAR(said[0].second.item(), loss, most);
    for (std::size_t i = 0; i < means.size(); ++i)
      EXPECT_NEAR(said[i + 1].second.item(), means[i], 1e-6) << said[i + 1].first;
  }
};

TEST_F(TaskValues, OfClassification) {
  double loss = 0;
  const std::vector<std::int32_t> labels{0, 1};
  for (std::size_t row = 0; row < 2; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) sum += std::exp(kLogits[3 * row + i]);
    loss += std::log(sum) - kLogits[3 * row + static_cast<std::size_t>(labels[row])];
  }
  expect<Classification>(from_ints(labels, {2}), loss / 2, {0.5});
}

// Two labels are told wrong: 0.5 is more likely than not, and 0 is not.
TEST_F(TaskValues, OfSeveralLabels) {
  double loss = 0;
  for (std::size_t i = 0; i < 6; ++i)
    loss += std::log1p(std::exp(kLogits[i])) - kLogits[i] * kTargets[i];
  expect<MultiLabel>(rows(kTargets), loss / 6, {4.0 / 6});
}

TEST_F(TaskValues, OfRegression) {
  double loss = 0;
  for (std::size_t i = 0; i < 6; ++i)
    loss += (kLogits[i] - kTargets[i]) * (kLogits[i] - kTargets[i]);
  expect<Regression>(rows(kTargets), loss / 6, {});
}

}  // namespace
}  // namespace aloft::e2e
