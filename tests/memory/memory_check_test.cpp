// A Plan's promise about memory, on real programs: kernels touch their operands and their scratch
// and nothing else, buffers that are dead may hold anything, and the planned peak is what is
// reserved and what is reached, to the byte. The check itself is tested in detector_test.cpp.
#include "exec/memory_check.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/host_device.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "memory/programs.h"

namespace aloft::memory {
namespace {

// The cpu, counting what is asked of it.
class CountingDevice : public cpu::HostDevice {
 public:
  CountingDevice() : HostDevice(cpu_backend()) {}
  Buffer allocate(std::size_t bytes, Space space) override {
    allocated += bytes;
    return HostDevice::allocate(bytes, space);
  }
  Buffer allocate_zeroed(std::size_t bytes, Space space) override {
    allocated += bytes;
    return HostDevice::allocate_zeroed(bytes, space);
  }
  std::size_t allocated = 0;
};

CountingDevice& device() {
  cpu_device();  // brings the host's threads
  static CountingDevice& counting = *new CountingDevice;
  return counting;
}

// While one lives, executors that are made check their memory.
class Checked {
 public:
  Checked() { setenv("ALOFT_CHECK_MEMORY", "1", 1); }
  ~Checked() { unsetenv("ALOFT_CHECK_MEMORY"); }
};

struct Case {
  const char* name;
  Seen (*run)(const Look&);
};

const Case kCases[] = {
    {"MlpO0", [](const Look& l) { return train_mlp("O0", l); }},
    {"MlpO1fp16", [](const Look& l) { return train_mlp("O1:fp16", l); }},
    {"LeNetO0", [](const Look& l) { return train_lenet("O0", l); }},
    {"LeNetO2bf16", [](const Look& l) { return train_lenet("O2:bf16", l); }},
    {"LeNetO2fp16", [](const Look& l) { return train_lenet("O2:fp16", l); }},
    {"GptO0", [](const Look& l) { return train_gpt("O0", 0, 1, l); }},
    {"GptO2bf16", [](const Look& l) { return train_gpt("O2:bf16", 0, 1, l); }},
    {"GptSplitMaster",
     [](const Look& l) { return train_gpt("O2:bf16", 0, 1, l, StateFormat::Split); }},
    {"GptO2fp16", [](const Look& l) { return train_gpt("O2:fp16", 0, 1, l); }},
    {"GptBf16Fp16", [](const Look& l) { return train_gpt("O2:bf16 backward=f16", 0, 1, l); }},
    {"GptDropout", [](const Look& l) { return train_gpt("O2:bf16", 0.1, 1, l); }},
    {"GptAccumulation", [](const Look& l) { return train_gpt("O2:fp16", 0.1, 3, l); }},
    {"DecodeF32", [](const Look& l) { return decode_gpt(DType::F32, l); }},
};

class Memory : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    static const bool once = [] {
      use_device(device());
      return true;
    }();
    (void)once;
    eager().clear_tape();
    omp_set_num_threads(2);
  }
};

TEST_P(Memory, NothingIsTouchedThatIsNotPlanned) {
  const Seen plain = GetParam().run([](Executor& e) { EXPECT_EQ(e.memory_check(), nullptr); });
  const Checked checked;
  bool was_looked = false;
  const Seen watched = GetParam().run([&](Executor& e) {
    was_looked = true;
    ASSERT_NE(e.memory_check(), nullptr);
    for (const auto& [arena, bytes] : e.plan().arena_bytes)
      EXPECT_EQ(e.memory_check()->reached(arena.arena), bytes) << name_of(arena);
  });
  EXPECT_TRUE(was_looked);
  EXPECT_EQ(plain.numbers, watched.numbers);
  ASSERT_EQ(plain.states.size(), watched.states.size());
  for (std::size_t i = 0; i < plain.states.size(); ++i)
    EXPECT_TRUE(plain.states[i] == watched.states[i]) << "variable " << i;
}

TEST_P(Memory, ThePlanReadsBackFromItsText) {
  GetParam().run([](Executor& e) {
    const std::string text = to_json(e.plan());
    const Plan again = plan_from_json(text);
    EXPECT_TRUE(to_json(again) == text);
    EXPECT_EQ(again.signature(), e.plan().signature());
    EXPECT_EQ(again.peak_bytes(), e.plan().peak_bytes());
    EXPECT_TRUE(print(again) == print(e.plan()));
  });
}

INSTANTIATE_TEST_SUITE_P(All, Memory, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

using Reserved = Memory;
TEST_P(Reserved, IsThePlannedPeakToTheByte) {
  manual_seed(4);
  LanguageModel task(std::make_unique<models::Gpt2>(tiny_gpt()));
  Optimizer optimizer = amp::prepare(task.model(), optim::AdamW{}, parse_precision("O2:bf16"));
  device().allocated = 0;
  const auto runner = graph_runner(task, optimizer, {3, gpt_columns(), 2, {}});
  runner->start();
  EXPECT_EQ(device().allocated, runner->programs()->plan().peak_bytes());
}
INSTANTIATE_TEST_SUITE_P(Once, Reserved, testing::Values(kCases[0]));

// Eager calls run under the same check.
TEST_F(Memory, EagerOpsAreChecked) {
  const auto run = [] {
    manual_seed(6);
    models::Mlp model({12, 24, 5});
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, "O2:bf16");
    std::vector<double> losses;
    for (int i = 0; i < 3; ++i) {
      const Tensor x =
          from_floats(std::vector<float>(9 * 12, 0.1f * static_cast<float>(i)), {9, 12});
      const Tensor label = from_ints(std::vector<std::int32_t>(9, i), {9});
      losses.push_back(minimize(cross_entropy(net(x), label), opt).loss());
    }
    return losses;
  };
  const std::vector<double> plain = run();
  const Checked checked;
  EXPECT_EQ(run(), plain);
}

}  // namespace
}  // namespace aloft::memory
