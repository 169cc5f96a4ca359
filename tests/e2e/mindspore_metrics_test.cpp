// Which labels MindSpore's metrics take, and the numbers that they give: class numbers, one-hot
// labels, targets in another shape than the outputs.
#include <gtest/gtest.h>

#include <vector>

#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/module.h"
#include "mindspore/context.h"
#include "mindspore/model.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "ops/reshape.h"

namespace aloft::e2e {
namespace {

// Of one batch.
double measured(const char* name, const Tensor& outputs, const Tensor& label) {
  const auto metric = ms::get_metric_fn(name);
  metric->clear();
  metric->update({{}, outputs, label});
  return metric->eval();
}

void expect_refused(const char* name, const Tensor& outputs, const Tensor& label) {
  const std::string text = refusal([&] { measured(name, outputs, label); });
  expect_words(text, {"E0841", "outputs f32[", "need"});
  EXPECT_NE(text.find("labels " + label.type().str()), std::string::npos) << text;
}

// Largest at 0, 1, 2, 0.
Tensor four_rows() {
  return from_floats({.9f, .1f, 0, .1f, .8f, .1f, .2f, .3f, .5f, .6f, .3f, .1f}, {4, 3});
}

TEST(MindsporeMetrics, AccuracyTakesClassNumbersOrOneHotLabels) {
  use_cpu();
  const Tensor y = four_rows();
  for (const char* name : {"acc", "accuracy", "top_1_accuracy"}) {
    EXPECT_EQ(measured(name, y, from_ints({0, 1, 1, 2}, {4})), 0.5) << name;
    EXPECT_EQ(measured(name, y, from_ints({0, 1, 2, 1}, {4})), 0.75) << name;
    EXPECT_EQ(measured(name, y, from_floats({0, 1, 2, 1}, {4})), 0.75) << name;
    const std::vector<int> one_hot{1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1};  // of 0, 1, 1, 2
    EXPECT_EQ(measured(name, y, from_ints(one_hot, {4, 3})), 0.5) << name;
    const Tensor floats = from_floats({one_hot.begin(), one_hot.end()}, {4, 3});
    EXPECT_EQ(measured(name, y, floats), 0.5) << name;
    EXPECT_EQ(measured(name, reshape(y, {2, 2, 3}), reshape(floats, {2, 2, 3})), 0.5) << name;
  }
}

TEST(MindsporeMetrics, TopFiveTakesTheSameLabels) {
  use_cpu();
  // The five largest are at 2 to 6, and at 0 to 4.
  const Tensor y = from_floats({0, 1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1, 0}, {2, 7});
  EXPECT_EQ(measured("top_5_accuracy", y, from_ints({2, 4}, {2})), 1);
  EXPECT_EQ(measured("top_5_accuracy", y, from_ints({1, 4}, {2})), 0.5);
  EXPECT_EQ(measured("top_5_accuracy", y, from_ints({1, 5}, {2})), 0);
  const Tensor one_hot = from_floats({0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}, {2, 7});
  EXPECT_EQ(measured("top_5_accuracy", y, one_hot), 0.5);
  expect_refused("top_5_accuracy", y, from_ints({2, 4}, {2, 1}));
  expect_refused("top_5_accuracy", y, from_ints({2}, {1}));
}

TEST(MindsporeMetrics, AccuracyRefusesLabelsThatWouldBroadcast) {
  use_cpu();
  const Tensor y = four_rows();
  const std::vector<std::int32_t> classes{0, 1, 1, 2};
  for (const char* name : {"accuracy", "top_1_accuracy", "top_5_accuracy"}) {
    for (const Shape& shape : {Shape{4, 1}, Shape{1, 4}, Shape{2, 2}})
      expect_refused(name, y, from_ints(classes, shape));
    expect_refused(name, y, from_ints({1}, {1}));
    expect_refused(name, y, from_ints({1}, {}));
    expect_refused(name, y, from_ints({0, 1, 1}, {3}));
    expect_refused(name, reshape(y, {2, 2, 3}), from_ints(classes, {2, 2}));
    expect_refused(name, from_floats({0, 1, 2, 0}, {4}), from_ints(classes, {4}));
  }
}

TEST(MindsporeMetrics, DistancesTakeTargetsOfTheOutputsShapeOrAnother) {
  use_cpu();
  const Shape column{3, 1}, row{3};
  for (const Shape& outputs : {column, row})
    for (const Shape& targets : {column, row}) {
      const Tensor y = from_floats({1, 2, 4}, outputs);
      EXPECT_DOUBLE_EQ(measured("mae", y, from_floats({1, 4, 1}, targets)), 5.0 / 3);
      EXPECT_DOUBLE_EQ(measured("mse", y, from_floats({1, 4, 1}, targets)), 13.0 / 3);
      EXPECT_DOUBLE_EQ(measured("mse", y, from_ints({1, 4, 1}, targets)), 13.0 / 3);
    }
  for (const char* name : {"mae", "mse"}) {
    expect_refused(name, from_floats({1, 2, 4}, column), from_floats({1}, {1}));
    expect_refused(name, from_floats({1, 2, 4}, column), from_floats({1, 2}, {1, 2}));
    expect_refused(name, from_floats({1, 2, 4}, row), from_floats(std::vector<float>(9), {3, 3}));
  }
}

TEST(MindsporeMetrics, WhatIsRefusedIsNotCounted) {
  use_cpu();
  const auto accuracy = ms::get_metric_fn("accuracy");
  accuracy->clear();
  accuracy->update({{}, four_rows(), from_ints({0, 1, 1, 2}, {4})});
  const ms::EvalBatch wrong{{}, four_rows(), from_ints({0, 1, 2, 0}, {4, 1})};
  EXPECT_EQ(code_of([&] { accuracy->update(wrong); }), "E0841");
  EXPECT_EQ(accuracy->eval(), 0.5);
  accuracy->update({{}, four_rows(), from_ints({0, 1, 2, 0}, {4})});
  EXPECT_EQ(accuracy->eval(), 0.75);
}

struct Passes : nn::Module {
  Tensor operator()(const Tensor& x) const { return x * 2; }
};

TEST(MindsporeMetrics, AModelMeasuresAndRefusesInBothModes) {
  use_cpu();
  Passes network;
  const auto loss = [](const Tensor& y, const Tensor&) { return mean(y); };
  for (const ms::Mode mode : {ms::PYNATIVE_MODE, ms::GRAPH_MODE}) {
    ms::set_context({.mode = mode});
    const auto eval = [&](const char* name, const Tensor& x, const Tensor& label) {
      ms::Model model(network, loss, {.metrics = {name}});
      std::vector<std::pair<Tensor, Tensor>> data{{x, label}};
      return model.eval(data).at(name);
    };
    EXPECT_EQ(eval("accuracy", four_rows(), from_ints({0, 1, 1, 2}, {4})), 0.5);
    EXPECT_EQ(eval("mae", from_floats({1, 2}, {2, 1}), from_floats({3, 0}, {2})), 2.5);
    EXPECT_EQ(code_of([&] {
                eval("accuracy", four_rows(), from_ints({0, 1, 1, 2}, {4, 1}));
              }),
              "E0841");
    EXPECT_EQ(code_of([&] { eval("mse", four_rows(), from_floats({1}, {1})); }), "E0841");
  }
  ms::set_context({.mode = ms::PYNATIVE_MODE});
}

}  // namespace
}  // namespace aloft::e2e
