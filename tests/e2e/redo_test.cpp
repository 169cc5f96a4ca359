// A step that is made again has the same bits; where a processor or memory is at fault, the first
// instruction that shows it is named.
#include "train/redo.h"

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/host_device.h"
#include "e2e/refusal.h"
#include "e2e/small_run.h"
#include "frontend/programs.h"
#include "runtime/current_device.h"

namespace aloft::e2e {
namespace {

// What is wrong with the test's processor or its memory, and when.
struct Fault {
  enum class Kind { None, Core, CoreOfManyThreads, Memory, StuckMemory } kind = Kind::None;
  std::string at;         // the instruction in whose run it shows
  int run = 0;            // of the training program, since the test set it, from 1 on
  int runs = 0;           // so far
  void* place = nullptr;  // the memory's, once it is known
};
Fault fault;

void flip(void* byte) { *static_cast<std::uint8_t*>(byte) ^= 0x40; }

// A kernel of the cpu, on a processor that may be at fault.
class OnFaulty : public Prepared {
 public:
  explicit OnFaulty(std::shared_ptr<const Prepared> kernel) : kernel_(std::move(kernel)) {}
  std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  std::string how() const override { return kernel_->how(); }
  bool is_cut_by_bound() const override { return kernel_->is_cut_by_bound(); }
  const LoopPart* loop_part() const override { return kernel_->loop_part(); }
  void run(const RunArgs& args) const override {
    kernel_->run(args);
    if (fault.kind == Fault::Kind::StuckMemory && fault.place)
      *static_cast<std::uint8_t*>(fault.place) = 0x7f;
    if (args.name != fault.at) return;
    std::byte* first = static_cast<std::byte*>(args.out[0]) + 3;
    const bool is_now = fault.runs == fault.run;
    switch (fault.kind) {
      case Fault::Kind::None:
        break;
      case Fault::Kind::Core:
        if (is_now) flip(first);
        break;
      case Fault::Kind::CoreOfManyThreads:  // as what the last thread of them would compute
        if (omp_get_max_threads() == fault.run) flip(first);
        break;
      case Fault::Kind::Memory:  // of a weight that a later instruction takes
        if (is_now) flip(fault.place);
        break;
      case Fault::Kind::StuckMemory:
        if (!fault.place) fault.place = first, *static_cast<std::uint8_t*>(fault.place) = 0x7f;
        break;
    }
  }

 private:
  std::shared_ptr<const Prepared> kernel_;
};

class FaultyBackend : public Backend {
 public:
  std::string_view name() const override { return cpu().name(); }
  std::vector<const Kernel*> candidates(Name op) const override { return cpu().candidates(op); }
  std::optional<Refusal> refuses(const CallSpec& call) const override {
    return cpu().refuses(call);
  }
  std::shared_ptr<const Prepared> prepare(const Kernel& kernel,
                                          const CallSpec& call) const override {
    return std::make_shared<OnFaulty>(cpu().prepare(kernel, call));
  }
  const Features& features() const override { return cpu().features(); }

 private:
  static const Backend& cpu() { return cpu_device().backend(); }
};

Device& faulty_device() {
  static const FaultyBackend backend;
  static cpu::HostDevice device(backend);
  return device;
}

// Counts runs of the training program, and notes where an operand of an instruction lies.
class Runs : public Observer {
 public:
  std::string watched;
  void program_begins(const ProgramEvent& e) override { fault.runs += e.program == "train"; }
  void before(const OpEvent& e) override {
    if (fault.kind == Fault::Kind::Memory && e.identity == watched)
      fault.place = static_cast<std::byte*>(e.in[1].address()) + 5;
  }
};

constexpr std::int64_t kStep = 8;  // right behind a checkpoint
constexpr const char* kFirstLinear = "h.0.attn.c_attn/linear#0";
constexpr const char* kLaterLinear = "h.1.mlp.c_fc/linear#0";

class Redo : public SmallRun {
 protected:
  RedoOptions options(int threads = 2) const {
    RedoOptions o;
    o.run = folder_ / "run";
    o.step = kStep;
    o.overrides = {{"train.threads", std::to_string(threads)}};
    return o;
  }
  RedoReport redone(Fault::Kind kind, const char* at, int on_run, const RedoOptions& o) const {
    const DeviceScope on(faulty_device());
    Runs runs;
    runs.watched = kLaterLinear;
    fault = {kind, at, on_run};
    const Observing counting(faulty_device(), runs);
    RedoReport report = redo_step(o);
    fault = {};
    return report;
  }
};

TEST_F(Redo, AStepHasTheBitsOfTheRunOnAnyNumberOfThreads) {
  run("run");
  for (const std::int64_t step : {0, 3, 7, 9, 11})
    for (const int threads : {1, 2, 4}) {
      RedoOptions o = options(threads);
      o.step = step;
      const RedoReport report = redo_step(o);
      EXPECT_FALSE(report.fault) << redo_text(report);
      EXPECT_FALSE(report.parted_at) << redo_text(report);
      EXPECT_TRUE(report.variables.empty()) << redo_text(report);
      EXPECT_EQ(report.is_state_compared, (step + 1) % 4 == 0) << step;
      EXPECT_TRUE(report.is_comparable);
      EXPECT_EQ(report.begins_at, step / 4 * 4);
      EXPECT_EQ(report.compared_steps, step % 4 + 1);
      EXPECT_EQ(report.repeats.size(), 3u);
      EXPECT_EQ(report.repeats[1].threads, std::max(1, threads - 1));
      EXPECT_TRUE(report.repeats[2].is_other_memory);
      EXPECT_GT(report.instructions, 50u);
    }
}

TEST_F(Redo, StepsOfMicroBatchesAreRepeatedWhole) {
  run("run", {"train.accumulate=2"});
  RedoOptions o = options();
  o.step = 5;
  const RedoReport report = redo_step(o);
  EXPECT_FALSE(report.fault || report.parted_at) << redo_text(report);
}

TEST_F(Redo, ARateThatGoesByLossesIsTheRuns) {
  run("run", {"schedule.kind=\"plateau\"", "schedule.patience=0", "schedule.threshold=0.9",
              "schedule.warmup=0", "train.eval_every=1"});
  RedoOptions o = options();
  o.step = 7;
  const RedoReport report = redo_step(o);
  EXPECT_EQ(report.compared_steps, 4);
  EXPECT_FALSE(report.fault || report.parted_at) << redo_text(report);
}

TEST_F(Redo, StepsWhoseLineIsGoneOrDamagedAreNotCompared) {
  run("run");
  const Path path = folder_ / "run" / "metrics.jsonl";
  const std::string whole = read_file(path);
  const std::size_t from = whole.rfind('\n', whole.find("\"step\":10,")) + 1;
  const std::size_t behind = whole.find('\n', from) + 1;
  ASSERT_GT(from, 0u);
  const std::string line = whole.substr(from, behind - from);
  for (const std::string& now :
       {std::string("garbage\n"), line.substr(0, line.size() / 2) + "\n", std::string(),
        std::string("{\"step\":10,\"kind\":\"train\"}\n")}) {
    folder_.put(path, whole.substr(0, from) + now + whole.substr(behind));
    RedoOptions o = options();
    o.step = 11;
    const RedoReport report = redo_step(o);
    EXPECT_EQ(report.compared_steps, 3) << now;
    EXPECT_EQ(report.unrecorded, std::vector<std::int64_t>{9}) << now;
    EXPECT_NE(redo_text(report).find("no whole line of step 9 (\"step\": 10)"), std::string::npos)
        << redo_text(report);
  }
}

TEST_F(Redo, AProcessorThatIsWrongOnceIsFound) {
  run("run");
  for (const int threads : {1, 2, 4})
    for (const int wrong : {1, 2, 3}) {
      const RedoReport report = redone(Fault::Kind::Core, kLaterLinear, wrong, options(threads));
      ASSERT_TRUE(report.fault) << threads << wrong;
      EXPECT_EQ(report.fault->instruction.identity, kLaterLinear);
      EXPECT_EQ(report.fault->instruction.op, "linear");
      EXPECT_EQ(report.fault->instruction.path, "h.1.mlp.c_fc");
      EXPECT_TRUE(report.fault->is_result);
      EXPECT_EQ(report.fault->repeat, std::max(wrong, 2));
      EXPECT_EQ(report.fault->wrong, wrong);
      if (wrong == 1) continue;  // its bytes are gone when the second shows it
      EXPECT_EQ(report.fault->elements.differing, 1);
      EXPECT_EQ(report.fault->elements.index, (std::vector<std::int64_t>{0, 0, 1}));
      EXPECT_EQ(report.fault->elements.bits, std::vector<int>{14});
    }
}

TEST_F(Redo, AProcessorThatIsAlwaysWrongIsFoundByOthersThatDoItsWork) {
  run("run");
  for (const int threads : {2, 4}) {
    const RedoReport report =
        redone(Fault::Kind::CoreOfManyThreads, kFirstLinear, threads, options(threads));
    ASSERT_TRUE(report.fault) << threads;
    EXPECT_EQ(report.fault->instruction.identity, kFirstLinear);
    EXPECT_TRUE(report.fault->is_result);
    EXPECT_EQ(report.fault->repeat, 2);
  }
}

TEST_F(Redo, ABitThatChangesInMemoryIsFoundWhereItIsTaken) {
  run("run");
  for (const int threads : {1, 2, 4}) {
    const RedoReport report = redone(Fault::Kind::Memory, kFirstLinear, 2, options(threads));
    ASSERT_TRUE(report.fault) << threads;
    EXPECT_EQ(report.fault->instruction.identity, kLaterLinear);
    EXPECT_FALSE(report.fault->is_result);
    EXPECT_EQ(report.fault->number, 1);
    EXPECT_EQ(report.fault->tensor, "h.1.mlp.c_fc.weight");
    EXPECT_EQ(report.fault->wrong, 2);
    EXPECT_EQ(report.fault->elements.differing, 1);
    EXPECT_EQ(report.fault->elements.bits, std::vector<int>{14});
    EXPECT_NE(redo_text(report).find("it changed in memory"), std::string::npos);
  }
}

TEST_F(Redo, AMemoryBitThatIsStuckIsFoundInOtherMemory) {
  run("run");
  const RedoReport report = redone(Fault::Kind::StuckMemory, kFirstLinear, 0, options());
  ASSERT_TRUE(report.fault);
  EXPECT_EQ(report.fault->instruction.identity, kFirstLinear);
  EXPECT_EQ(report.fault->repeat, 3);
  RedoOptions same = options();
  same.other_memory = false;
  const RedoReport in_place = redone(Fault::Kind::StuckMemory, kFirstLinear, 0, same);
  EXPECT_FALSE(in_place.fault) << "as docs/redo.md says";
  EXPECT_EQ(in_place.parted_at, kStep) << "but the run's numbers are others";
}

TEST_F(Redo, WhatTheRunRecordedIsComparedToTheBit) {
  {
    const DeviceScope on(faulty_device());
    Runs runs;
    fault = {Fault::Kind::Core, kLaterLinear, 7};
    const Observing counting(faulty_device(), runs);
    run("run");
    fault = {};
  }
  use_cpu();
  RedoOptions o = options();
  o.step = 7;
  const RedoReport report = redo_step(o);
  EXPECT_FALSE(report.fault);
  EXPECT_EQ(report.parted_at, 6) << redo_text(report);
  EXPECT_FALSE(report.variables.empty());
  o.step = 5;
  EXPECT_FALSE(redo_step(o).parted_at);
}

TEST_F(Redo, NothingOfTheRunIsTouched) {
  run("run");
  const std::string before = read_file(folder_ / "run/run.json", 1 << 26);
  redo_step(options());
  EXPECT_EQ(read_file(folder_ / "run/run.json", 1 << 26), before);
  EXPECT_EQ(metrics("run").size(), 15u);
}

// Changes a result before anybody else sees it, on whatever device.
class Flipping : public Observer {
 public:
  void program_begins(const ProgramEvent& e) override { runs_ += e.program == "train"; }
  void after(const OpEvent& e) override {
    if (runs_ != 2 || e.identity != kLaterLinear) return;
    auto bytes = e.out[0].edit<std::uint8_t>(3, 1);
    bytes[0] ^= 0x40;
  }

 private:
  int runs_ = 0;
};

TEST_F(Redo, OfASimulatedDeviceToo) {
  run("run", {"train.device=\"sim\""});
  RedoOptions o = options();
  o.overrides.push_back({"train.device", "\"sim\""});
  Device& device = open_device("sim");
  const DeviceScope on(device);
  const RedoReport report = redo_step(o);
  EXPECT_FALSE(report.fault || report.parted_at) << redo_text(report);
  Flipping flipping;
  const Observing faulty(device, flipping);
  const RedoReport wrong = redo_step(o);
  ASSERT_TRUE(wrong.fault);
  EXPECT_EQ(wrong.fault->instruction.identity, kLaterLinear);
  EXPECT_EQ(wrong.fault->wrong, 2);
}

// Which recipe a step was made under, and with which data, must be known.
TEST_F(Redo, StepsBeforeAResumeThatChangedTheRecipe) {
  run("run", {"train.steps=8", "train.checkpoint_every=4", "train.keep_checkpoints=1"});
  run("run",
      {"train.steps=12", "train.checkpoint_every=4", "train.keep_checkpoints=1",
       "optimizer.lr=1e-4"},
      true);
  RedoOptions o = options();
  for (const std::int64_t step : {2, 6}) {
    o.step = step;
    const std::string said = refusal([&] { redo_step(o); });
    expect_words(said, {"E0862", "changed the recipe"});
  }
}

TEST_F(Redo, WhatWasNotRecordedIsRefused) {
  run("run", {"train.steps=2"});
  RedoOptions o = options();
  for (const std::int64_t step : {2, 100}) {
    o.step = step;
    EXPECT_THROW(redo_step(o), UserError) << step;
  }
}

// By compiled programs, which give its bits.
TEST_F(Redo, ARunOfEagerStepsIsMadeAgain) {
  run("run", {"train.mode=\"eager\""});
  RedoOptions o = options();
  for (const std::int64_t step : {1, 7}) {
    o.step = step;
    const RedoReport report = redo_step(o);
    EXPECT_FALSE(report.fault || report.parted_at) << redo_text(report);
    EXPECT_TRUE(report.variables.empty()) << redo_text(report);
    EXPECT_EQ(report.is_state_compared, step == 7);
    EXPECT_FALSE(report.is_comparable);
    EXPECT_GT(report.instructions, 50u);
  }
}

TEST_F(Redo, ADamagedCheckpointIsNamedAndPassedOver) {
  run("run");
  const Path file = checkpoint("run", "step-000008") / "model.safetensors";
  std::string bytes = read_file(file, 1 << 26);
  bytes[bytes.size() / 2] ^= 1;
  folder_.put(file, bytes);
  RedoOptions o = options();
  for (const std::int64_t step : {7, 9}) {  // before it, and on from it
    o.step = step;
    const RedoReport report = redo_step(o);
    const std::string text = redo_text(report);
    EXPECT_FALSE(report.fault || report.parted_at) << text;
    EXPECT_EQ(report.begins_at, 4);
    EXPECT_FALSE(report.is_state_compared);
    EXPECT_EQ(report.is_saved_state_damaged, step == 7);
    ASSERT_EQ(report.damaged.size(), 1u);
    EXPECT_NE(report.damaged[0].find("step-000008: the checkpoint cannot be used: "),
              std::string::npos);
    EXPECT_NE(text.find("passed over: " + report.damaged[0]), std::string::npos);
  }
}

// The checkpoints that know of it may be gone, or damaged: with its first data the step would have
// other numbers, and no fault.
TEST_F(Redo, AReturnThatNoCheckpointKnowsIsRefused) {
  run("run");
  const Path lines = folder_ / "run" / "metrics.jsonl";
  folder_.put(lines,
              read_file(lines, 1 << 26) +
                  R"({"rollback": 1, "step": 4, "from_step": 7, "reason": "the loss is NaN"})"
                  "\n");
  RedoOptions o = options();
  o.step = 5;
  expect_words(refusal([&] { redo_step(o); }), {"E0862", "went back"});
  o.step = 2;
  EXPECT_FALSE(redo_step(o).fault);
}

}  // namespace
}  // namespace aloft::e2e
