// Inputs with two homes: the next batch travels while the last one is computed with, and never a
// moment too soon.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "backends/cpu/cpu_backend.h"
#include "backends/sim/sim_device.h"
#include "base/error.h"
#include "frontend/programs.h"
#include "memory/programs.h"
#include "ops/binary.h"
#include "runtime/current_device.h"

namespace aloft::memory {
namespace {

// Holds back a stream of a device until it is opened, by an event of another device.
class Gate {
 public:
  explicit Gate(Stream& held) {
    auto& other = static_cast<sim::SimStream&>(open_device("sim:delays=31").stream());
    other.enqueue("gate", 0, [state = state_] {
      std::unique_lock lock(state->mutex);
      state->opened.wait(lock, [&] { return state->is_open; });
    });
    held.wait(other.record());
  }
  ~Gate() { open(); }
  void open() {
    const std::lock_guard lock(state_->mutex);
    state_->is_open = true;
    state_->opened.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable opened;
    bool is_open = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// sum += weight * x, of 5 elements; a second program of the same inputs that reads no sum.
class Sums {
 public:
  explicit Sums(Device& device) : on_(device), programs_(1) {
    sum_->name = "sum";
    sum_->type = {DType::F32, {5}};
    sum_->cls = StateClass::Buffer;
    sum_->buffer = std::make_shared<Buffer>(device.allocate_zeroed(20));
    programs_.load_ahead();
    const std::vector<InputSpec> inputs{{"x", {DType::F32, {5}}}, {"w", {DType::F32, {5}}}};
    programs_.add("add", inputs, [&](const std::vector<Tensor>& in) {
      Emitter& e = current_emitter();
      e.update(sum_, add(e.state(sum_), mul(in[0], in[1])));
      return results::Named{{"product", mul(in[0], in[1])}};
    });
    programs_.add("other", inputs, [](const std::vector<Tensor>& in) {
      return results::Named{{"sum", add(in[0], in[1])}};
    });
    programs_.finish();
    x = programs_.input<float>("add", "x");
    w = programs_.input<float>("add", "w");
  }
  void issue(float value) {
    x.set(std::vector<float>(5, value));
    w.set(std::vector<float>(5, 2));
    programs_.issue(programs_.find("add"), {});
  }
  float other(float value) {
    programs_.input<float>("other", "x").set(std::vector<float>(5, value));
    programs_.input<float>("other", "w").set(std::vector<float>(5, 1));
    programs_.run(programs_.find("other"), {});
    return programs_.output<float>("other", "sum").item();
  }
  std::vector<float> sum() const { return sum_->to_floats(); }
  Programs& programs() { return programs_; }

  InputPort<float> x, w;

 private:
  DeviceScope on_;
  VariablePtr sum_ = std::make_shared<Variable>();
  Programs programs_;
};

std::vector<float> fives(float value) { return std::vector<float>(5, value); }

TEST(Loading, AHomeIsKeptForAsLongAsARunReadsIt) {
  e2e::use_cpu();
  Device& device = open_device("sim");
  Sums sums(device);
  Gate gate(device.stream());  // no run begins
  for (int i = 1; i <= 5; ++i) sums.issue(static_cast<float>(i));
  gate.open();
  EXPECT_EQ(sums.sum(), fives(2 * (1 + 2 + 3 + 4 + 5)));
}

TEST(Loading, ARunBeginsWhenItsInputsAreThere) {
  e2e::use_cpu();
  Device& device = open_device("sim");
  Sums sums(device);
  sums.issue(3);
  EXPECT_EQ(sums.sum(), fives(6));
  Gate gate(device.stream(1));  // nothing arrives
  sums.issue(4);
  sums.issue(5);
  gate.open();
  EXPECT_EQ(sums.sum(), fives(24));
}

TEST(Loading, WhatIsLoadedOutlivesRunsOfOtherPrograms) {
  e2e::use_cpu();
  Sums sums(open_device("sim:delays=32"));
  sums.issue(1);
  sums.x.set(fives(7));
  sums.w.set(fives(2));
  EXPECT_EQ(sums.other(20), 21);
  sums.programs().run(sums.programs().find("add"), {});
  EXPECT_EQ(sums.sum(), fives(2 + 14));
}

TEST(Loading, EveryDoorToAnInputIsOfTheNextRun) {
  e2e::use_cpu();
  Sums sums(open_device("sim:delays=33"));
  for (const char* device : {"cpu", "sim"}) {
    Sums any(open_device(device));
    EXPECT_EQ(any.x.size(), 5u) << device;
    EXPECT_EQ(any.x.buffer().bytes(), 20u) << device;
    EXPECT_EQ(any.programs().executor().input("add", "x").bytes(), 20u) << device;
    EXPECT_THROW(any.x.set(std::vector<float>(6, 1)), UserError) << device;
  }
  sums.issue(1);
  std::ranges::fill(sums.x.write(), 9.0F);
  sums.x.set(fives(4));  // behind the write
  EXPECT_EQ(sums.x.buffer().read_one<float>(), 4);
  sums.w.set(fives(1));
  std::ranges::fill(sums.w.write(), 3.0F);  // behind the load
  sums.programs().run(sums.programs().find("add"), {});
  EXPECT_EQ(sums.sum(), fives(2 + 12));
}

TEST(Loading, AFailureThatWasToldStaysInNoStream) {
  e2e::use_cpu();
  Device& device = open_device("sim");
  Sums sums(device);
  sums.issue(1);
  static_cast<sim::SimStream&>(device.stream()).enqueue("fails", 0, [] {
    throw InternalError("a fault of the device");
  });
  sums.issue(2);  // left undone, and its homes' events with it
  EXPECT_THROW(sums.sum(), InternalError);
  for (int i = 0; i < 4; ++i) sums.issue(10);
  EXPECT_EQ(sums.sum(), fives(2 + 80));
}

// A device that once refuses its stream: an instruction cannot be handed over.
class Refusing : public sim::SimDevice {
 public:
  Refusing() : SimDevice("sim", sim::parse_sim("sim"), cpu_device()) {}
  Stream& stream(int index = 0) override {
    if (std::exchange(refuses, false)) throw EnvironmentError("E0401", "no room for a stream");
    return SimDevice::stream(index);
  }
  bool refuses = false;
};

// What was handed over still reads its inputs: the next run's go to the other home.
TEST(Loading, ARunThatEndsHalfWayHasHadItsHomeAlsoWhereSomebodyLooksOn) {
  e2e::use_cpu();
  static Refusing& device = *new Refusing;  // eager state of the thread stays on it
  struct Refuse : Observer {
    explicit Refuse(Refusing& device) : device(device) {}
    void before(const OpEvent& e) override {
      if (e.instruction == 0) gate.emplace(device.stream());  // what comes is not begun
      device.refuses = e.instruction == at;
    }
    Refusing& device;
    int at = 0;
    std::optional<Gate> gate;
  } refuse(device);
  Sums sums(device);
  Executor& executor = sums.programs().executor();
  const auto next_home = [&] {
    const Buffer homes = executor.input_homes("add", "x");
    return executor.input_turns("add")->next(homes, 20).address();
  };
  refuse.at = static_cast<int>(executor.plan().programs[0].instructions.size()) - 1;
  sums.issue(1);
  EXPECT_EQ(sums.sum(), fives(2));
  const void* const home = next_home();
  {
    const Observing looking(device, refuse);
    EXPECT_THROW(sums.issue(10), EnvironmentError);
  }
  EXPECT_NE(next_home(), home);
  sums.issue(100);
  EXPECT_EQ(next_home(), home);
  refuse.gate->open();
  EXPECT_EQ(sums.sum(), fives(2 + 200));
}

TEST(Loading, APlanWhoseHomesAreSharedIsRefused) {
  e2e::use_cpu();
  Sums sums(open_device("sim"));
  const Plan plan = sums.programs().plan();
  EXPECT_EQ(to_json(plan_from_json(to_json(plan))), to_json(plan));
  EXPECT_NE(print(plan).find("in 2 homes"), std::string::npos);
  const auto refused = [&](const auto& change) {
    Plan broken = plan;
    for (PlannedBuffer& b : broken.programs[1].buffers)
      if (b.arena == Arena::Staging) change(b);
    EXPECT_THROW(verify(broken), InternalError);
    EXPECT_THROW(plan_from_json(to_json(broken)), DataError);
  };
  refused([](PlannedBuffer& b) { b.placement.offset = 0; });
  refused([](PlannedBuffer& b) { b.homes = 3; });
}

// While a step computes, the next batch travels.
TEST(Loading, TheNextBatchTravelsBesideAStep) {
  e2e::use_cpu();
  const DeviceScope on(open_device("sim:910B3"));
  auto& device = static_cast<sim::SimDevice&>(open_device("sim:910B3"));
  manual_seed(4);
  TinyGpt gpt("O2:bf16", 0, 1);
  const auto load = [&](int call) { gpt.runner->load(Runner::Part::Update, gpt.batch(call)); };
  ASSERT_TRUE(gpt.runner->loads_ahead());
  load(0);
  device.synchronize();
  (void)device.take_timeline();
  for (int call = 1; call < 4; ++call) {
    gpt.runner->issue(Runner::Part::Update);
    load(call);
    gpt.runner->numbers();
  }
  device.synchronize();
  const std::vector<sim::Span> all = device.take_timeline();
  int beside = 0;
  for (const sim::Span& upload : all) {
    if (upload.name != "upload" || upload.stream != 1) continue;
    beside += std::ranges::any_of(all, [&](const sim::Span& s) {
      return s.stream == 0 && s.name != "download" && s.begin < upload.end && upload.begin < s.end;
    });
  }
  EXPECT_EQ(beside, 2 * 3);
}

}  // namespace
}  // namespace aloft::memory
