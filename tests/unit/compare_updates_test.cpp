// What a step makes of its gradients, in two runs of which one has another type or loss scale.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "dump_records.h"
#include "files/tensor_files.h"
#include "observe/compare/comparison.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

// A step of a model of one product, by the lengths of its weight and of what is added to that.
Json step_of(double weight, double update) {
  return {{"Module.fc.Linear.forward.0",
           forward(tensor({8, 4}, 3), tensor({8, 4}, 7), {{"weight", tensor({4, 4}, weight)}})},
          {"Module.fc.Linear.parameters_grad.0", {{"weight", Json::array({tensor({4, 4}, 2)})}}},
          {"Module.fc.Linear.parameters_update.0",
           {{"weight", Json::array({tensor({4, 4}, update)})}}}};
}

class CompareUpdates : public ::testing::Test {
 protected:
  void put(const std::string& run, const Json& data, const Json& training,
           const char* task = "statistics") {
    make_folder(folder_ / run);
    const Json dump = {{"task", task}, {"training", training}, {"data", data}};
    TemporaryFolder::put(folder_ / run / "dump.json", dump.dump());
  }
  std::string said() {
    return compare_runs(
               {folder_ / "npu/dump.json", folder_ / "bench/dump.json", folder_ / "out", {}})
        .at(0)
        .sentence;
  }
  static bool is_said(const std::string& sentence, const std::string& part) {
    return sentence.find(part) != std::string::npos;
  }

  TemporaryFolder folder_;
};

// Elements of gradients are brought to the other run's loss scale, as their figures are: these do
// not show an order.
TEST_F(CompareUpdates, ElementsOfScaledGradientsAreCompared) {
  const auto dump = [&](const char* run, double scale, std::vector<float> gradient) {
    for (float& g : gradient) g *= static_cast<float>(scale);
    Json data = step_of(5, 0.5);
    Json& record = data["Module.fc.Linear.parameters_grad.0"]["weight"][0];
    record = tensor({2, 3}, std::sqrt(91.0) * scale);
    record["Max"] = 6 * scale, record["Min"] = scale, record["Mean"] = 3.5 * scale;
    record["data_name"] = "gradient.npy";
    put(run, data, {{"loss_scale", scale}}, "tensor");
    const Path folder = folder_ / run / "dump_tensor_data";
    make_folder(folder);
    write_npy(folder / "gradient.npy", {DType::F32, {2, 3}, std::as_bytes(std::span(gradient))});
  };
  dump("npu", 1024, {1, 2, 3, 4, 5, 6}), dump("bench", 1, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(is_said(said(), "no divergence")) << said();
  dump("npu", 1024, {1, 3, 2, 6, 5, 4});
  EXPECT_TRUE(is_said(said(), "the gradient of fc.weight")) << said();
  EXPECT_TRUE(is_said(said(), "element")) << said();
}

// An update is the difference of two parameters that are stored: beside float64 what float32 has of
// one that is as small as the parameter's units is off by a part of it.
TEST_F(CompareUpdates, UpdatesAsSmallAsUnitsAreRounded) {
  const auto step = [](double update, const char* type, double weight = 5) {
    Json data = step_of(weight, update);
    data["Module.fc.Linear.parameters_update.0"]["weight"][0] = tensor({4, 4}, update, type);
    data["Module.fc.Linear.forward.0"]["parameters"]["weight"] = tensor({4, 4}, weight, type);
    return data;
  };
  const auto compared = [&](const Json& npu, const Json& bench) {
    put("npu", npu, Json::object()), put("bench", bench, Json::object());
    return said();
  };
  const char *const single = "torch.float32", *const wide = "torch.float64";
  const double update = 1e-6;  // beside 5: 0.6 of it may be rounding, and 0.09 are
  EXPECT_TRUE(is_said(compared(step(1.09 * update, single), step(update, wide)), "no divergence"));
  EXPECT_TRUE(is_said(compared(step(update, wide), step(1.09 * update, single)), "no divergence"));
  EXPECT_TRUE(is_said(compared(step(3 * update, single), step(update, wide)), "update, fc"));
  // What is much larger is not.
  EXPECT_TRUE(is_said(compared(step(1.35e-3, single), step(1e-3, wide)), "update, fc"));
  // A low type that loses its updates is a mistake.
  EXPECT_TRUE(
      is_said(compared(step(0, "torch.bfloat16"), step(0.01, "torch.bfloat16")), "update, fc"));
}

}  // namespace
}  // namespace aloft::compare
