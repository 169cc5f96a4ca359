// An op that a device has no low-precision kernel for is computed in f32, with one warning that
// names it and its place; so is everything where the device lacks the type.
#include <gtest/gtest.h>

#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/amp.h"
#include "frontend/programs.h"
#include "nn/linear.h"
#include "ops/activation.h"
#include "ops/cross_entropy.h"
#include "ops/softmax.h"
#include "optim/momentum.h"
#include "temporary_folder.h"

namespace aloft::e2e {
namespace {

constexpr int kLine = __LINE__ + 7;  // of the activation below

struct Network : nn::Module {
  nn::Linear up{*this, "up", 4, 8};
  nn::Linear down{*this, "down", 8, 3};
  Tensor operator()(const Tensor& x) const {
    const Tensor hidden = up(x);
    const Tensor active = relu(hidden);
    return down(active);
  }
};

Device& device_of(const TemporaryFolder& folder, const char* profile) {
  const Path path = folder.path() / "profile.toml";
  TemporaryFolder::put(path, profile);
  return open_device("sim:" + path.string());
}

Tensor rows() { return from_floats({1, 0, 0, 2, 0, 1, 0, 3, 0, 0, 1, 4}, {3, 4}); }

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// Trains on the device; what was said on stderr, and the state behind it.
std::pair<std::string, std::map<std::string, std::string>> trained(bool is_compiled,
                                                                   const char* precision) {
  testing::internal::CaptureStderr();
  manual_seed(1);
  Network network;
  auto [net, opt] = amp::initialize(network, optim::Momentum{.lr = 0.1}, precision);
  auto step = [&net = net, &opt = opt](const Tensor& x, const Tensor& label) {
    return minimize(cross_entropy(net(x), label), opt);
  };
  auto compiled = compile(step);
  double first = 0, last = 0;
  for (int i = 0; i < 4; ++i) {
    const Tensor label = from_ints({0, 1, 2}, {3});
    const StepResult r = is_compiled ? compiled(rows(), label) : step(rows(), label);
    (i == 0 ? first : last) = r.loss();
  }
  EXPECT_LT(last, first);
  return {testing::internal::GetCapturedStderr(), state_of(network, opt)};
}

TEST(LowKernels, AnOpWithoutOneIsComputedInF32AndSaidOnce) {
  use_cpu();
  const TemporaryFolder folder;
  const DeviceScope on(device_of(folder, "f32_ops = [\"relu\", \"relu_grad\"]\n"));
  const auto [said, state] = trained(false, "O2:bf16");
  const std::string place = "low_kernels_test.cpp:" + std::to_string(kLine);
  EXPECT_EQ(count(said, "relu has no kernel in bf16"), 1u) << said;
  expect_words(said, {"warning: ", place.c_str(), "f32"});
  // The same in a compiled step; it was said.
  const auto [again, same] = trained(true, "O2:bf16");
  EXPECT_EQ(count(again, "relu has no kernel"), 0u) << again;
  EXPECT_EQ(state, same);
}

TEST(LowKernels, OnlyThatOpIsComputedInF32) {
  use_cpu();
  const TemporaryFolder folder;
  const DeviceScope on(device_of(folder, "f32_ops = [\"relu\"]\n"));
  Network network;
  auto [net, opt] = amp::initialize(network, optim::Momentum{.lr = 0.1}, "O1:bf16");
  auto f = compile([&net = net](const Tensor& x) { return net(x); });
  f(rows());
  int wide = 0, low = 0;
  for (const DecisionRecord& r : f.programs().decisions("program")) {
    wide += r.decision.reason == Reason::NoLowKernel;
    low += r.decision.compute == DType::BF16;
    if (r.decision.reason == Reason::NoLowKernel) {
      EXPECT_EQ(r.op, Name("relu"));
      EXPECT_EQ(r.decision.compute, DType::F32);
      EXPECT_EQ(r.decision.store, DType::BF16);  // as those around it
    }
  }
  EXPECT_EQ(wide, 1);
  EXPECT_EQ(low, 2);
}

// Its body has ops that have kernels: nothing is missing.
TEST(LowKernels, AnOpWhoseBodyIsComputedKeepsItsType) {
  use_cpu();
  const TemporaryFolder folder;
  const DeviceScope on(device_of(folder, "f32_ops = [\"linear\"]\n"));
  const auto [said, state] = trained(true, "O2:bf16");
  EXPECT_EQ(count(said, "linear has no kernel"), 0u) << said;
  static_cast<void>(state);
}

TEST(LowKernels, ATypeThatTheDeviceLacksIsSaidOnce) {
  use_cpu();
  const TemporaryFolder folder;
  const DeviceScope on(device_of(folder, "types = [\"f32\", \"bf16\"]\n"));
  const auto [said, state] = trained(false, "O2:fp16");
  EXPECT_EQ(count(said, "f16 is no type of this device"), 1u) << said;
  expect_words(said, {"low_kernels_test.cpp"});
  const auto [again, same] = trained(true, "O2:fp16");
  EXPECT_EQ(again, "");
  EXPECT_EQ(state, same);
}

}  // namespace
}  // namespace aloft::e2e
