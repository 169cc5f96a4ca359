// Devices side by side: what a model learns is the same on each of them, and a process may train on
// several at once.
#include <gtest/gtest.h>

#include <thread>

#include "backends/sim/sim_device.h"
#include "frontend/programs.h"
#include "memory/programs.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "runtime/current_device.h"

namespace aloft::memory {
namespace {

struct Case {
  const char* name;
  Seen (*run)();
};

void look_at_nothing(Executor&) {}

const Case kCases[] = {
    {"MlpO0", [] { return train_mlp("O0", look_at_nothing); }},
    {"MlpO1fp16", [] { return train_mlp("O1:fp16", look_at_nothing); }},
    {"LeNetO2bf16", [] { return train_lenet("O2:bf16", look_at_nothing); }},
    {"GptO0", [] { return train_gpt("O0", 0, 1, look_at_nothing); }},
    {"GptO1bf16", [] { return train_gpt("O1:bf16", 0, 1, look_at_nothing); }},
    {"GptO2bf16", [] { return train_gpt("O2:bf16", 0, 1, look_at_nothing); }},
    {"GptO3bf16", [] { return train_gpt("O3:bf16", 0, 1, look_at_nothing); }},
    {"GptSplitMaster",
     [] { return train_gpt("O2:bf16", 0, 1, look_at_nothing, StateFormat::Split); }},
    {"GptO2fp16", [] { return train_gpt("O2:fp16", 0, 1, look_at_nothing); }},
    {"GptBf16Fp16", [] { return train_gpt("O2:bf16 backward=f16", 0, 1, look_at_nothing); }},
    {"GptAccumulation", [] { return train_gpt("O2:fp16", 0.1, 3, look_at_nothing); }},
    {"DecodeF32", [] { return decode_gpt(DType::F32, look_at_nothing); }},
};

Seen run_on(const std::string& device, const Case& c) {
  const DeviceScope on(open_device(device));
  omp_set_num_threads(2);
  return c.run();
}

class Devices : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { e2e::use_cpu(); }
};

TEST_P(Devices, GiveTheSameBits) {
  const Seen cpu = run_on("cpu", GetParam());
  for (const char* device : {"sim", "sim:delays=1", "sim:910B3,delays=77"}) {
    const Seen sim = run_on(device, GetParam());
    EXPECT_EQ(sim.numbers, cpu.numbers) << device;
    ASSERT_EQ(sim.states.size(), cpu.states.size());
    for (std::size_t i = 0; i < sim.states.size(); ++i)
      EXPECT_TRUE(sim.states[i] == cpu.states[i]) << device << ", variable " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Devices, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ManyDevices, TrainAtOnceInOneProcess) {
  e2e::use_cpu();
  const Case& c = kCases[5];
  const Seen alone = run_on("cpu", c);
  Seen seen[3];
  const char* const names[] = {"cpu", "sim", "sim:H100,delays=4"};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&, i] { seen[i] = run_on(names[i], c); });
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(seen[i] == alone) << names[i];
}

// A model on a device, stepped eagerly or compiled.
class OnDevice {
 public:
  explicit OnDevice(const std::string& device)
      : device_(open_device(device)),
        on_(std::make_unique<DeviceScope>(device_)),
        model_({6, 8, 3}),
        prepared_(amp::initialize(model_, optim::AdamW{.lr = 0.01}, "O1:bf16")),
        compiled_(compile(
            std::function<StepResult(const Tensor&)>([this](const Tensor& x) { return one(x); }))) {
    on_.reset();
  }
  double step(int i, bool is_compiled) {
    const DeviceScope on(device_);
    std::vector<float> values(4 * 6);
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] = static_cast<float>((k * 7 + static_cast<std::size_t>(i)) % 5) - 2;
    const Tensor x = from_floats(values, {4, 6});
    return (is_compiled ? compiled_(x) : one(x)).loss();
  }

 private:
  StepResult one(const Tensor& x) {
    const Tensor y = prepared_.first(x);
    return minimize(mean(y * y), prepared_.second);
  }
  Device& device_;
  std::unique_ptr<DeviceScope> on_;
  models::Mlp model_;
  std::pair<amp::Net<models::Mlp>, Optimizer> prepared_;
  Compiled<std::function<StepResult(const Tensor&)>> compiled_;
};

TEST(ManyDevices, ServeOneThreadByTurns) {
  e2e::use_cpu();
  for (const bool is_compiled : {false, true}) {
    std::vector<std::vector<double>> losses(3);
    std::vector<std::unique_ptr<OnDevice>> models;
    for (const char* name : {"cpu", "sim", "sim:A100,delays=2"}) {
      manual_seed(3);
      models.push_back(std::make_unique<OnDevice>(name));
    }
    for (int i = 0; i < 6; ++i)
      for (std::size_t m = 0; m < models.size(); ++m)
        losses[m].push_back(models[m]->step(i, is_compiled));
    EXPECT_LT(losses[0].back(), losses[0].front());
    EXPECT_EQ(losses[1], losses[0]) << is_compiled;
    EXPECT_EQ(losses[2], losses[0]) << is_compiled;
  }
}

TEST(ManyDevices, ATensorOfAnotherDeviceIsRefused) {
  e2e::use_cpu();
  const DeviceScope on_cpu(open_device("cpu"));
  const Tensor here = from_floats({1, 2, 3}, {3});
  const DeviceScope on_sim(open_device("sim"));
  const Tensor there = from_floats({1, 2, 3}, {3});
  try {
    add(here, there).to_vector();
    FAIL() << "two memories were added";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), "E0304") << e.what();
    EXPECT_NE(std::string(e.what()).find("on one device"), std::string::npos) << e.what();
  }
  EXPECT_EQ((there + there).to_vector(), (std::vector<double>{2, 4, 6}));
  // A compiled function copies its arguments, from wherever they lie.
  auto twice = compile([](const Tensor& x) { return x + x; });
  EXPECT_EQ(twice(here).to_vector(), (std::vector<double>{2, 4, 6}));
}

TEST(ManyDevices, AVariableOfAnotherDeviceIsRefused) {
  e2e::use_cpu();
  std::unique_ptr<models::Mlp> model;
  {
    const DeviceScope on_cpu(open_device("cpu"));
    model = std::make_unique<models::Mlp>(std::vector<std::int64_t>{3, 2});
  }
  const DeviceScope on_sim(open_device("sim"));
  const Tensor x = from_floats({1, 2, 3}, {1, 3});
  const auto refused = [&](const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "it was taken";
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), "E0331") << e.what();
      EXPECT_NE(std::string(e.what()).find("sim"), std::string::npos) << e.what();
    }
  };
  refused([&] { (*model)(x).to_vector(); });
  refused([&] { compile([&](const Tensor& in) { return (*model)(in); })(x); });
}

}  // namespace
}  // namespace aloft::memory
