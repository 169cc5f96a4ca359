// A training step allocates nothing and takes no lock of ours; what libraries allocate inside is
// the same in every step.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "backends/cpu/cpu_backend.h"
#include "data/loader.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "memory/allocation_counter.h"
#include "memory/programs.h"

namespace aloft::memory {
namespace {

class Allocations : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_counting()) GTEST_SKIP() << "the sanitizer owns the allocator of this build";
    e2e::use_cpu();
    eager().clear_tape();
    omp_set_num_threads(2);
    manual_seed(4);
  }
};

constexpr int kWarm = 3, kSteps = 6;

// Counts of each of some steps, after some that do not count.
template <class Step>
std::array<Counts, kSteps> counts_of(Step step) {
  std::array<Counts, kSteps> counts;
  for (int i = 0; i < kWarm; ++i) step(i);
  for (int i = 0; i < kSteps; ++i) {
    const Counts before = counts_so_far();
    step(kWarm + i);
    counts[i] = counts_so_far() - before;
  }
  return counts;
}

template <class Step>
void expect_quiet(const std::string& what, Step step) {
  const auto counts = counts_of(step);
  for (int i = 0; i < kSteps; ++i) {
    EXPECT_EQ(counts[i].ours, 0) << what << ", step " << i;
    EXPECT_EQ(counts[i].locks, 0) << what << ", step " << i;
    EXPECT_EQ(counts[i].library, counts[0].library) << what << ", step " << i;
  }
  std::printf("%s: %ld allocations a step inside libraries\n", what.c_str(), counts[0].library);
}

TEST_F(Allocations, TheCounterSeesThem) {
  std::mutex mutex;
  const Counts before = counts_so_far();
  { const std::lock_guard lock(mutex); }
  const std::string text(1000 + static_cast<std::size_t>(before.ours), 'x');
  void* volatile block = std::malloc(10);
  std::free(block);
  const Buffer memory = cpu_device().allocate(100);
  const Counts seen = counts_so_far() - before;
  EXPECT_GE(seen.ours, 3) << text.size();
  EXPECT_EQ(seen.locks, 1);
}

TEST_F(Allocations, AGptStepMakesNone) {
  for (const char* precision : {"O0", "O1:bf16", "O2:bf16", "O2:fp16", "O2:bf16 backward=f16"})
    for (const double dropout : {0.0, 0.1}) {
      TinyGpt gpt(precision, dropout, 1);
      const ExampleBatch batch = gpt.batch(1);
      expect_quiet(precision, [&](int) { gpt.runner->step(batch); });
    }
}

TinyGpt probed_gpt(const std::string& precision, const ProbeSection& probe) {
  manual_seed(4);
  return {precision, 0.1, 1, StateFormat::F32, {}, UpdateTime::Late, optim::AdamW{.lr = 5e-3},
          probe};
}

// Statistics of all that a step computes are a part of it, and read behind it.
TEST_F(Allocations, NeitherDoesAStepThatIsLookedAt) {
  for (const char* precision : {"O0", "O2:bf16", "O2:fp16"})
    for (const char* level : {"module", "mix"}) {
      ProbeSection probe;
      probe.task = "statistics";
      probe.level = level;
      TinyGpt gpt = probed_gpt(precision, probe);
      const ExampleBatch batch = gpt.batch(1);
      expect_quiet(std::string("statistics of ") + level + "s, " + precision,
                   [&](int i) { gpt.runner->step(batch, i); });
    }
}

std::string instructions_of(TinyGpt& gpt, const ProbeSection& probe) {
  const Plan& plan = gpt.runner->programs()->plan();
  std::string text;
  for (const Instruction& i :
       plan.find(Runner::program_of(aloft::Look::Nothing, probe))->instructions)
    text += i.identity + " " + i.kernel + " " + i.call.op.str() + i.call.attrs.str() + "\n";
  return text;
}

// Of a probe that is off nothing is left, whatever else it says; steps between those that are
// looked at run the same instructions.
TEST_F(Allocations, AStepThatNobodyLooksAtHasThePlainInstructions) {
  ProbeSection off, some;
  off.level = "mix";
  off.histograms = true;
  off.list = {"h.0.mlp"};
  some.task = "statistics";
  some.every = 10;
  TinyGpt plain = probed_gpt("O2:fp16", {}), none = probed_gpt("O2:fp16", off),
          tenth = probed_gpt("O2:fp16", some);
  const std::string text = instructions_of(plain, {});
  EXPECT_GT(std::ranges::count(text, '\n'), 20);
  EXPECT_EQ(instructions_of(none, off), text);
  EXPECT_EQ(instructions_of(tenth, some), text);
  const auto programs = [](TinyGpt& gpt) { return gpt.runner->programs()->plan().programs.size(); };
  EXPECT_EQ(programs(none), programs(plain));
  EXPECT_EQ(programs(tenth), programs(plain) + 1);
}

TEST_F(Allocations, NeitherDoMicroBatchesAndEvaluation) {
  TinyGpt gpt("O2:fp16", 0.1, 2);
  const ExampleBatch whole = gpt.batch(1), part = gpt.batch(2, 2);
  expect_quiet("accumulate, step, evaluate", [&](int) {
    gpt.runner->accumulate(part);
    gpt.runner->step(whole);
    gpt.runner->evaluate(part);
  });
}

TEST_F(Allocations, AnOverflowedStepMakesNone) {
  TinyGpt gpt("O2:fp16", 0, 1);
  const ExampleBatch batch = gpt.batch(1);
  expect_quiet("overflow", [&](int i) {
    if (i == kWarm + 2) gpt.optimizer.scale->buffer->write_one(1e38f);
    EXPECT_EQ(gpt.runner->step(batch).finite, i != kWarm + 2);
    if (i == kWarm + 2) gpt.optimizer.scale->buffer->write_one(1024.0f);
  });
}

// The loader hands a batch over under a lock of its own, once a batch; it allocates nothing.
TEST_F(Allocations, TheTrainersStepWithItsDataMakesNone) {
  TinyGpt gpt("O2:bf16", 0, 1);
  const TokenSource source = TokenSource::from_ids(std::vector<std::int32_t>(10000, 1), 2);
  TokenExamples examples(source, {.batch = TinyGpt::kRows, .context = 16});
  const auto counts = counts_of([&](int) { gpt.runner->step(*examples.next()); });
  for (const Counts& c : counts) EXPECT_EQ(c.ours, 0);
}

TEST_F(Allocations, AConvolutionalStepMakesNone) {
  for (const char* precision : {"O0", "O2:bf16"})
    train_lenet(precision, [&](Executor& e) {
      const std::int64_t rows = 7;
      expect_quiet(std::string("LeNet ") + precision, [&](int) { e.run(0, std::span(&rows, 1)); });
    });
}

TEST_F(Allocations, ADecodedTokenMakesNone) {
  decode_gpt(DType::F32, [&](Executor& e) {
    const int prefill = e.find("prefill");
    const int decode = e.find("decode");
    expect_quiet("decode", [&](int) {
      e.run(prefill, {});
      e.run(decode, {});
    });
  });
}

}  // namespace
}  // namespace aloft::memory
