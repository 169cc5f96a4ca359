// Parameters of two runs that have trained apart, element by element: what rounding makes of them
// is no divergence, another learning rate is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "dump_records.h"
#include "files/tensor_files.h"
#include "observe/compare/comparison.h"
#include "scalar/float_formats.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

constexpr std::size_t kSide = 64, kElements = kSide * kSide;

// Numbers from -1 to 1 that look drawn at random.
double drawn(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15u + b * 0xC2B2AE3D27D4EB4Fu + 1;
  for (int i = 0; i < 3; ++i) x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u;
  return static_cast<double>(x >> 11) / static_cast<double>(std::uint64_t{1} << 52) - 1;
}

// A run that is told apart by how its gradients are rounded.
struct Loop {
  double noise = 0;  // of a gradient, relative to the typical one
  double rate = 1e-3;
  bool is_bf16 = false;  // its parameters, as dumps show them
  std::uint64_t draws = 1;
};

// Steps of Adam on a matrix, of which one element in a thousand has no gradient in exact numbers.
class Trained {
 public:
  explicit Trained(const Loop& run) : run_(run) {
    for (std::size_t i = 0; i < kElements; ++i) weight_.push_back(0.05 * drawn(7, i));
    first_.assign(kElements, 0), second_.assign(kElements, 0), update_.assign(kElements, 0);
  }
  void step() {
    ++steps_;
    const double steps = static_cast<double>(steps_);
    for (std::size_t i = 0; i < kElements; ++i) {
      const double exact =
          i % 1000 == 500 ? 0 : drawn(11, i) + 0.5 * drawn(steps_ + 20, i) + weight_[i];
      const double g = exact + run_.noise * drawn(1000 * run_.draws + steps_, i);
      first_[i] = 0.9 * first_[i] + 0.1 * g;
      second_[i] = 0.999 * second_[i] + 0.001 * g * g;
      const double m = first_[i] / (1 - std::pow(0.9, steps));
      const double v = second_[i] / (1 - std::pow(0.999, steps));
      update_[i] = v > 0 ? -run_.rate * m / (std::sqrt(v) + 1e-12) : 0;
      weight_[i] = static_cast<double>(static_cast<float>(weight_[i] + update_[i]));
    }
  }
  std::vector<float> shown() const {
    std::vector<float> all;
    for (const double w : weight_)
      all.push_back(run_.is_bf16 ? scalar::f32_of(scalar::bf16_of(w)) : static_cast<float>(w));
    return all;
  }
  const std::vector<double>& update() const { return update_; }

 private:
  Loop run_;
  std::uint64_t steps_ = 0;
  std::vector<double> weight_, first_, second_, update_;
};

template <class T>
Json record_of(const std::vector<T>& values, const char* type) {
  double max = -INFINITY, min = INFINITY, sum = 0, squares = 0;
  for (const T value : values) {
    const double v = static_cast<double>(value);
    max = std::max(max, v), min = std::min(min, v), sum += v, squares += v * v;
  }
  Json r = tensor({int{kSide}, int{kSide}}, std::sqrt(squares), type);
  r["Max"] = max, r["Min"] = min, r["Mean"] = sum / static_cast<double>(kElements);
  return r;
}

class CompareTrained : public ::testing::Test {
 protected:
  // The dump of a step, which has the parameter before it and what it adds.
  void put(const std::string& name, const Loop& run, int step) {
    Trained trained(run);
    for (int i = 0; i < step; ++i) trained.step();
    const std::vector<float> weight = trained.shown();
    trained.step();
    const char* const type = run.is_bf16 ? "torch.bfloat16" : "torch.float32";
    Json own = record_of(weight, type);
    own["data_name"] = "weight.npy";
    const Json data = {{"Module.fc.Linear.forward.0",
                        {{"input_args", Json::array()}, {"parameters", {{"weight", own}}}}},
                       {"Module.fc.Linear.parameters_update.0",
                        {{"weight", Json::array({record_of(trained.update(), "torch.float32")})}}}};
    const Path folder = folder_ / name / ("step" + std::to_string(step)) / "rank";
    make_folder(folder / "dump_tensor_data");
    write_npy(folder / "dump_tensor_data/weight.npy",
              {DType::F32, {kSide, kSide}, std::as_bytes(std::span(weight))});
    TemporaryFolder::put(folder / "dump.json", Json{{"task", "tensor"}, {"data", data}}.dump());
  }
  // What is said of the step of that number, of whichever nothing before is known.
  std::string said(const Loop& npu, const Loop& bench, int step) {
    put("npu", npu, step), put("bench", bench, step);
    return compared();
  }
  // Of what was put there, which is gone then.
  std::string compared() {
    const auto all = compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}});
    std::filesystem::remove_all(folder_ / "npu"), std::filesystem::remove_all(folder_ / "bench");
    return all.at(0).sentence;
  }
  static bool is_same(const std::string& sentence) {
    return sentence.find("no divergence") != std::string::npos;
  }

  TemporaryFolder folder_;
};

TEST_F(CompareTrained, RoundingIsNoDivergence) {
  const Loop one{1e-7, 1e-3, false, 1}, other{1e-7, 1e-3, false, 2};
  for (const int step : {0, 1, 2, 5, 20})
    EXPECT_TRUE(is_same(said(one, other, step))) << said(one, other, step);
}

TEST_F(CompareTrained, BFloat16BesideFloat32IsNoDivergence) {
  const Loop low{0x1p-7, 1e-3, true, 1}, exact{1e-7, 1e-3, false, 2};
  for (const int step : {0, 1, 5, 20}) {
    EXPECT_TRUE(is_same(said(low, exact, step))) << said(low, exact, step);
    EXPECT_TRUE(is_same(said(exact, low, step))) << said(exact, low, step);
  }
}

// A hundredth more moves most elements by more than rounding does, and none by much.
TEST_F(CompareTrained, AnotherRateIsFound) {
  const Loop one{1e-7, 1e-3, false, 1}, other{1e-7, 1.01e-3, false, 2};
  for (const int step : {1, 3, 5, 10}) {
    const std::string sentence = said(other, one, step);
    EXPECT_NE(sentence.find("weight of fc is another one before the step: it is off by"),
              std::string::npos)
        << step << sentence;
    EXPECT_NE(sentence.find("in a typical element"), std::string::npos) << sentence;
  }
}

TEST_F(CompareTrained, AnElementThatNoUpdateCanHaveMovedIsFound) {
  const Loop one{1e-7, 1e-3, false, 1}, other{1e-7, 1e-3, false, 2};
  // Before the first step parameters are what was loaded, to the last bit.
  for (const auto& [step, by] : {std::pair(5, 0.02F), std::pair(0, 1e-6F)}) {
    put("npu", one, step), put("bench", other, step);
    const Path file =
        folder_ / ("npu/step" + std::to_string(step) + "/rank/dump_tensor_data/weight.npy");
    std::string bytes = read_file(file);
    float last = 0;
    char* const place = bytes.data() + bytes.size() - sizeof last;
    std::memcpy(&last, place, sizeof last);
    last += by;
    std::memcpy(place, &last, sizeof last);
    TemporaryFolder::put(file, bytes);
    const std::string sentence = compared();
    EXPECT_NE(sentence.find("in an element"), std::string::npos) << sentence;
  }
}

// A module with a bias that one step has made, of 0, and the function that takes it, in the second
// step. The sign of some elements' gradients is rounding, and other elements of it in the two runs.
class CompareTakenBias : public ::testing::Test {
 protected:
  static constexpr int kBias = 64;
  static std::vector<float> bias(int other_sign, float scale = 1) {
    std::vector<float> all;
    for (int i = 0; i < kBias; ++i) all.push_back((i % 2 == 0 ? 1e-3F : -1e-3F) * scale);
    all[static_cast<std::size_t>(other_sign)] *= -1;
    return all;
  }
  static Json record(const std::vector<float>& values, const char* file) {
    Json r = record_of(values, "torch.float32");
    r["shape"] = {kBias}, r["data_name"] = file;
    return r;
  }
  // `taken`: what the function takes as its bias.
  void put(const std::string& name, bool is_ours, const std::vector<float>& own,
           const std::vector<float>& taken) {
    const Path folder = folder_ / name / "step1" / "rank";
    make_folder(folder / "dump_tensor_data");
    for (const auto& [file, values] : {std::pair("own.npy", &own), std::pair("taken.npy", &taken)})
      write_npy(folder / "dump_tensor_data" / file,
                {DType::F32, {kBias}, std::as_bytes(std::span(*values))});
    Json update = record_of(own, "torch.float32");
    update["shape"] = {kBias};
    const std::string call = is_ours ? "Torch.linear.0.forward" : "Functional.linear.0.forward";
    const Json data = {{call,
                        {{"input_args", {tensor({8, 64}, 3), record(taken, "taken.npy")}},
                         {"input_kwargs", Json::object()},
                         {"output", Json::array({tensor({8, 64}, 5)})}}},
                       {"Module.fc.Linear.forward.0",
                        {{"input_args", Json::array({tensor({8, 64}, 3)})},
                         {"output", Json::array({tensor({8, 64}, 5)})},
                         {"parameters", {{"bias", record(own, "own.npy")}}}}},
                       {"Module.fc.Linear.parameters_update.0", {{"bias", Json::array({update})}}}};
    Json dump = {{"task", "tensor"}, {"data", data}};
    if (is_ours) dump["taps"] = {{call, {"fc/linear#0"}}};
    TemporaryFolder::put(folder / "dump.json", dump.dump());
    TemporaryFolder::put(folder / "construct.json",
                         Json{{call, "Module.fc.Linear.forward.0"}}.dump());
  }
  std::string compared() {
    return compare_runs({folder_ / "ours", folder_ / "theirs", folder_ / "out", {}}).at(0).sentence;
  }

  TemporaryFolder folder_;
};

TEST_F(CompareTakenBias, HasTheLimitOfTheParameter) {
  put("ours", true, bias(4), bias(4));
  put("theirs", false, bias(9), bias(9));
  const std::string said = compared();
  EXPECT_NE(said.find("no divergence: 7 tensors"), std::string::npos) << said;
}

TEST_F(CompareTakenBias, AnotherValueInItsPlaceIsFound) {
  put("ours", true, bias(4), bias(4, 1.5F));
  put("theirs", false, bias(9), bias(9));
  const std::string said = compared();
  EXPECT_NE(said.find("what fc/linear#0 takes (1) is off"), std::string::npos) << said;
}

}  // namespace
}  // namespace aloft::compare
