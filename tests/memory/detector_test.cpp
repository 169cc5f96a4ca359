// The memory check finds what it is for: kernels that are wrong on purpose, in a Plan of two
// instructions, and Plans that are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "backends/cpu/host_device.h"
#include "base/error.h"
#include "exec/executor.h"
#include "exec/memory_check.h"

namespace aloft {
namespace {

constexpr std::size_t kBytes = 64 * sizeof(float);

// What the second instruction's kernel does wrong besides copying its operand to its result.
enum class Fault {
  None,
  WritesPastScratch,  // by one byte: into the slack of a size that is not a multiple of 64
  WritesBeforeScratch,
  ReadsPastOperand,
  ReadsBeforeOperand,
  WritesPastResult,
  WritesFarPastResult,
  WritesItsOperand,
  ReadsScratchUnwritten,
  LeavesAnElementUnwritten,
  RemembersAnOldBuffer,
};
Fault fault = Fault::None;
constexpr std::size_t kScratch = 40;
const char* old_buffer = nullptr;

class Copy : public Prepared {
 public:
  explicit Copy(bool is_second) : is_second_(is_second) {}
  std::size_t scratch_bytes() const override { return is_second_ ? kScratch : 0; }
  void run(const RunArgs& args) const override {
    auto* in = static_cast<char*>(args.in[0]);
    auto* out = static_cast<char*>(args.out[0]);
    auto* scratch = static_cast<char*>(args.scratch);
    char before[sizeof(float)];
    std::memcpy(before, out + kBytes - sizeof before, sizeof before);
    std::memcpy(out, in, kBytes);
    if (!is_second_) {
      old_buffer = out;
      return;
    }
    std::memset(scratch, 0, fault == Fault::ReadsScratchUnwritten ? kScratch - 1 : kScratch);
    volatile char* const touch = [&]() -> char* {
      switch (fault) {
        case Fault::WritesPastScratch:
          return scratch + kScratch;
        case Fault::WritesBeforeScratch:
          return scratch - 1;
        case Fault::WritesPastResult:
          return out + kBytes;
        case Fault::WritesFarPastResult:
          return out + 4096;
        case Fault::WritesItsOperand:
          return in + 5;
        default:
          return nullptr;
      }
    }();
    if (touch) *touch = 1;
    const volatile char* const look = [&]() -> const char* {
      switch (fault) {
        case Fault::ReadsPastOperand:
          return in + kBytes;
        case Fault::ReadsBeforeOperand:
          return in - 1;
        case Fault::ReadsScratchUnwritten:
          return scratch + kScratch - 1;
        case Fault::RemembersAnOldBuffer:
          return old_buffer;
        default:
          return nullptr;
      }
    }();
    if (look) out[7] = static_cast<char>(out[7] ^ *look);
    // As if the last element had never been stored: what was there before stays.
    if (fault == Fault::LeavesAnElementUnwritten)
      std::memcpy(out + kBytes - sizeof before, before, sizeof before);
  }

 private:
  const bool is_second_;
};

class TestBackend : public Backend {
 public:
  std::string_view name() const override { return "test"; }
  std::vector<const Kernel*> candidates(Name op) const override {
    static const Kernel first{"test.first", "first", always, [](const CallSpec&) {
                                return std::unique_ptr<Prepared>(new Copy(false));
                              }};
    static const Kernel second{"test.second", "second", always, [](const CallSpec&) {
                                 return std::unique_ptr<Prepared>(new Copy(true));
                               }};
    return {op == Name("first") ? &first : &second};
  }
  const Features& features() const override { return features_; }
  void need_alignment(std::size_t bytes) { features_.alignment = bytes; }

 private:
  Features features_;
};

// x -> first -> second -> y.
Plan two_instructions() {
  const TensorType row{DType::F32, {64}};
  Program p;
  p.name = "copy";
  p.buffers = {{"input:x", Arena::Staging, kBytes, {}, 0, 2},
               {"h/first#0", Arena::Activations, kBytes, {}, 0, 1},
               {"h/second#0", Arena::Activations, kBytes, {.offset = 256}, 1, 2},
               {"scratch of h/second#0", Arena::Activations, kScratch, {.offset = 512}, 1, 1}};
  Instruction first;
  first.call = {"first", {}, {row}, {row}, 1};
  first.kernel = "test.first";
  first.in = {{0, row}};
  first.out = {{1, row}};
  first.identity = "h/first#0";
  Instruction second = first;
  second.call.op = "second";
  second.kernel = "test.second";
  second.in = {{1, row}};
  second.out = {{2, row}};
  second.scratch = 3;
  second.identity = "h/second#0";
  p.instructions = {first, second};
  p.inputs = {{"x", {0, row}, false}};
  p.outputs = {{"y", {2, row}, false}};
  Plan plan;
  plan.backend = "test";
  add_program(plan, p, {});
  return plan;
}

void run_with(Fault f) {
  fault = f;
  setenv("ALOFT_CHECK_MEMORY", "1", 1);
  static const TestBackend backend;
  cpu::HostDevice device(backend);
  Executor executor(two_instructions(), device, {});
  const auto x = executor.input("copy", "x").write<float>();
  for (int i = 0; i < 64; ++i) x[i] = static_cast<float>(i);
  executor.run(0, {});
  EXPECT_TRUE(std::ranges::equal(executor.output("copy", "y").read<float>(), x));
  for (Arena a : {Arena::Staging, Arena::Activations})
    EXPECT_EQ(executor.memory_check()->reached(a), executor.plan().arena_bytes.at(a));
}

// Plans lay out at multiples of 64 bytes.
TEST(PlanMemory, ADeviceThatNeedsMoreAlignmentIsRefused) {
  TestBackend backend;
  cpu::HostDevice device(backend);
  for (const std::size_t enough : {1, 16, 64}) {
    backend.need_alignment(enough);
    EXPECT_NO_THROW(Executor(two_instructions(), device, {})) << enough;
  }
  for (const std::size_t more : {48, 128, 4096}) {
    backend.need_alignment(more);
    try {
      Executor(two_instructions(), device, {});
      FAIL() << more << " was taken";
    } catch (const EnvironmentError& e) {
      EXPECT_EQ(e.code(), "E0412");
      EXPECT_NE(std::string(e.what()).find("64 bytes"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(std::to_string(more) + " bytes"), std::string::npos)
          << e.what();
    }
  }
}

TEST(MemoryCheck, ARightKernelPasses) { run_with(Fault::None); }

void expect_found(Fault f, const std::vector<std::string>& parts) {
  try {
    run_with(f);
    FAIL() << "nothing was found";
  } catch (const InternalError& e) {
    for (const std::string& part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << part << "\n" << e.what();
  }
}

TEST(MemoryCheck, NamesInstructionBufferAndOffset) {
  const std::vector<std::string> place = {"copy 1, h/second#0", "test.second"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), place.begin(), place.end());
    return more;
  };
  expect_found(Fault::WritesPastScratch,
               with({"scratch of h/second#0 (activations at 512)", "byte 40 of 40 was written"}));
  expect_found(Fault::WritesPastResult,
               with({"h/second#0 (activations at 256)", "byte 256 of 256 was written"}));
  expect_found(Fault::WritesItsOperand,
               with({"h/first#0 (activations at 0)", "byte 5 of an operand was written"}));
  expect_found(Fault::ReadsScratchUnwritten,
               with({"h/second#0 (activations at 256)", "byte 7 of 256 depends on"}));
  expect_found(Fault::LeavesAnElementUnwritten,
               with({"h/second#0 (activations at 256)", "byte 252 of 256 depends on"}));
}

// What faults ends the process; ctest runs these in a child.
TEST(MemoryCheckDeathTest, AFaultIsNamedToo) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto expect_death = [](Fault f, const std::string& buffer, const std::string& saw) {
    EXPECT_EXIT(run_with(f), testing::ExitedWithCode(70),
                "E9000.*\n.*copy 1, h/second#0\n.*test.second\n.*" + buffer + ".*\n.*" + saw);
  };
  expect_death(Fault::WritesBeforeScratch, "scratch of", "byte -1 of 40 was touched");
  expect_death(Fault::ReadsPastOperand, "h/first#0", "byte 256 of 256 was touched");
  expect_death(Fault::ReadsBeforeOperand, "h/first#0", "byte -1 of 256 was touched");
  expect_death(Fault::WritesFarPastResult, "h/second#0", "byte 4096 of 256 was touched");
  EXPECT_EXIT(run_with(Fault::RemembersAnOldBuffer), testing::ExitedWithCode(70),
              "copy 1, h/second#0\n.*test.second\n.*none of its buffers");
}

TEST(MemoryCheck, AResultHalfOverAnOperandIsNamed) {
  const TensorType row{DType::F32, {64}};
  const CallSpec call{"first", {}, {row}, {row}, 1};
  alignas(64) std::byte memory[2 * kBytes] = {};
  fault = Fault::None;
  Copy kernel(false);
  const auto run = [&](std::ptrdiff_t result) {
    void *in[] = {memory}, *out[] = {memory + result};
    run_isolated(kernel, call, {in, out, nullptr, {}}, {"copy 0", "test.first", {"x"}, {"y"}, ""});
  };
  EXPECT_NO_THROW(run(0));  // in place
  EXPECT_NO_THROW(run(kBytes));
  try {
    run(64);
    FAIL() << "nothing was found";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("its bytes overlap those of x"), std::string::npos)
        << e.what();
  }
}

TEST(MemoryCheck, ABufferUsedOutsideItsLifeIsNoPlan) {
  for (const int buffer : {1, 2, 3}) {
    Plan plan = two_instructions();
    PlannedBuffer& b = plan.programs[0].buffers[buffer];
    if (buffer == 1)
      b.last = 0;  // the second instruction reads it
    else
      b.first = b.last = 2;
    EXPECT_THROW(verify(plan), InternalError) << buffer;
  }
  EXPECT_NO_THROW(verify(two_instructions()));
}

}  // namespace
}  // namespace aloft
