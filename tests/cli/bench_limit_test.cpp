// The limit that a benched step is held against, computed from made-up measurements: every part of
// it from above and from below, and the order in which it is measured.
#include "cli/bench_limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/bench_turns.h"
#include "ops/matmul.h"
#include "ops/update_layout.h"
#include "scalar/philox.h"

namespace aloft::cli {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

const ProductKind kSmall{1, 2, 3, 4, DType::F32}, kLarge{2, 30, 40, 50, DType::BF16};

// Two products of one kind, an op without, one of each kind, and an update in two ops.
StepWork work() {
  StepWork w;
  w.instructions = {{{{kSmall, 2}}, false},
                    {{}, false},
                    {{{kSmall, 1}, {kLarge, 1}}, false},
                    {{}, true},
                    {{}, true}};
  w.update_bytes = 12e6;
  return w;
}

MachineBest machine() {
  MachineBest best;
  best.products = {{kSmall, {2, 3}}, {kLarge, {5, 6}}};
  best.see_rates(10, 12);
  return best;
}

TEST(BenchLimit, IsTheWorkAtTheBestRates) {
  const LimitMs limit = limit_of(work(), machine(), std::vector<double>(5, kNever));
  EXPECT_DOUBLE_EQ(limit.products.zeros_ms, 3 * 2 + 5);
  EXPECT_DOUBLE_EQ(limit.products.normal_ms, 3 * 3 + 6);
  EXPECT_DOUBLE_EQ(limit.update, 1);  // 12 MB at 12 GB/s
  EXPECT_DOUBLE_EQ(limit.zeros(), 12);
  EXPECT_DOUBLE_EQ(limit.normal(), 16);
}

TEST(BenchLimit, TakesTheBetterOfBothRatesOfMemory) {
  MachineBest best;
  for (const auto& [sweep, update] : {std::pair{10., 12.}, {9., 8.}, {16., 11.}})
    best.see_rates(sweep, update);
  EXPECT_EQ(best.sweep_gb_s, 16);
  EXPECT_EQ(best.update_gb_s, 12);
  best.products = machine().products;
  EXPECT_DOUBLE_EQ(limit_of(work(), best, std::vector<double>(5, kNever)).update, 0.75);
}

TEST(BenchLimit, CountsWhatWasFasterInsideTheStep) {
  // The first op took 3.5, between its 4 on zeros and 6 on normal numbers less; the third more.
  const LimitMs limit = limit_of(work(), machine(), std::vector<double>{3.5, 8, 10, 0.3, 0.4});
  EXPECT_DOUBLE_EQ(limit.products.zeros_ms, 3.5 + 7);
  EXPECT_DOUBLE_EQ(limit.products.normal_ms, 3.5 + 9);
  EXPECT_DOUBLE_EQ(limit.update, 0.3 + 0.4);
  const LimitMs slower = limit_of(work(), machine(), std::vector<double>{4.5, 8, 8, 0.6, 0.7});
  EXPECT_DOUBLE_EQ(slower.products.zeros_ms, 4 + 7);
  EXPECT_DOUBLE_EQ(slower.products.normal_ms, 4.5 + 8);
  EXPECT_DOUBLE_EQ(slower.update, 1);
}

// Whatever the machine does, and without a cut: what was measured alone reaches far beyond it.
TEST(BenchLimit, IsNoMoreThanTheFastestStep) {
  const scalar::RandomKey key{7, 0, 0, 1};
  std::uint64_t at = 0;
  const auto draw = [&] { return 0.1 + 10 * scalar::uniform(key, at++); };
  for (int machine_number = 0; machine_number < 200; ++machine_number) {
    MachineBest best;
    best.products = {{kSmall, {draw(), draw()}}, {kLarge, {draw(), draw()}}};
    best.see_rates(draw(), draw());
    std::vector<double> least(5, kNever);
    double fastest = kNever;
    for (int step = 0; step < 4; ++step) {
      double whole = 0;
      for (double& ms : least) {
        const double here = draw();
        whole += here;
        ms = std::min(ms, here);
      }
      fastest = std::min(fastest, whole);
    }
    const LimitMs limit = limit_of(work(), best, least);
    EXPECT_LE(limit.zeros(), fastest);
    EXPECT_LE(limit.normal(), fastest);
  }
}

TensorType f32(const Shape& shape) { return {DType::F32, shape}; }

TEST(BenchLimit, WorkIsTheProductsOfEachOpAndTheBytesOfTheUpdate) {
  const auto op = [](const char* name, std::vector<TensorType> in, std::vector<TensorType> out,
                     Phase phase) {
    Instruction ins;
    ins.call = {name, {}, std::move(in), std::move(out)};
    ins.phase = phase;
    return ins;
  };
  const TensorType a = f32({5, 7}), b = f32({7, 11}), c = f32({5, 11});
  Program program;
  program.instructions = {
      op("matmul", {a, b}, {c}, Phase::Forward), op("add", {c, c}, {c}, Phase::Backward),
      op("momentum_update", {f32({}), f32({}), {DType::I32, {}}, {DType::I64, {}}, b, b, b}, {b, b},
         Phase::Update)};
  program.instructions[2].call.attrs = to_attrs(UpdateAttrs{.count = 1, .decay = {0}});
  Plan plan;
  plan.programs = {program};
  const StepWork work = work_of(plan, program);
  ASSERT_EQ(work.instructions.size(), 3u);
  const std::map<ProductKind, int> product{{{1, 5, 11, 7, DType::F32}, 1}};
  EXPECT_EQ(work.instructions[0].products, product);
  EXPECT_EQ(work.products(), product);
  EXPECT_FALSE(work.instructions[0].is_update || work.instructions[1].is_update);
  EXPECT_TRUE(work.instructions[2].is_update);
  // The gradient read, weight and momentum read and written: five times, and no more.
  EXPECT_EQ(work.update_bytes, 5 * 4 * 7 * 11);
}

// X X^T has a half that mirrors the other: who computes it all is half as good as can be.
TEST(BenchLimit, AMatrixTimesItsOwnTransposeIsHalfAProduct) {
  const auto product = [](int left, int right, bool transposed) {
    Instruction ins;
    ins.call = {"matmul",
                to_attrs(MatmulAttrs{.transpose_b = transposed}),
                {f32({5, 5}), f32({5, 5})},
                {f32({5, 5})}};
    ins.in = {{left, f32({5, 5})}, {right, f32({5, 5})}};
    return ins;
  };
  Program program;
  program.instructions = {product(1, 1, true), product(1, 1, false), product(1, 2, true)};
  Plan plan;
  const StepWork work = work_of(plan, program);
  const std::vector<double> shares = {work.instructions[0].share, work.instructions[1].share,
                                      work.instructions[2].share};
  EXPECT_EQ(shares, (std::vector<double>{0.5, 1, 1}));
  EXPECT_DOUBLE_EQ(work.flops(), 2.5 * 2 * 5 * 5 * 5);
  MachineBest best;
  best.products[{1, 5, 5, 5, DType::F32}] = {2, 3};
  best.see_rates(1, 1);
  EXPECT_DOUBLE_EQ(limit_of(work, best, std::vector<double>(3, kNever)).products.zeros_ms, 5);
}

// A formula of tensors is ops like others: its bytes follow from what is trained and kept.
TEST(BenchLimit, TheBytesOfAFormulaOfTensorsAreTheStates) {
  Plan plan;
  const auto slot = [&](StateClass cls, bool requires_grad = true) {
    StateSlot& s = plan.state.emplace_back();
    s.type = f32({3, 5}), s.cls = cls, s.requires_grad = requires_grad;
  };
  slot(StateClass::Parameter), slot(StateClass::Parameter, false), slot(StateClass::Optimizer);
  slot(StateClass::Control), slot(StateClass::Buffer);
  Program& program = plan.programs.emplace_back();
  program.instructions.resize(1);
  program.instructions[0].call.op = Name("sgd_update_of_nothing");
  EXPECT_EQ(unavoidable_update_bytes(plan), 0);
  program.instructions[0].call.op = Name("muon_numbers");
  // Weight and momentum read and written, the gradient read.
  EXPECT_EQ(unavoidable_update_bytes(plan), 5 * 4 * 3 * 5);
}

// A round after another: what one found faster than those before it counts, the rest does not.
TEST(BenchLimit, AProductAloneTakesTheLeastOfAllRounds) {
  cpu::ProductAlone alone({1, 5, 11, 7, DType::F32});
  double packed = 0, other = 0, normal = 0;
  const auto round = [&](double of_packed, double of_others, double of_normal) {
    packed = of_packed, other = of_others, normal = of_normal;
    alone.measure([&](const cpu::MatmulProblem& p, cpu::LibraryLayout layout, cpu::Operands of) {
      if (of == cpu::Operands::Normal) return normal;
      const bool is_packed = layout == cpu::LibraryLayout::PackedB;
      EXPECT_FALSE(is_packed && (p.transpose_a || p.transpose_b));
      return is_packed ? packed : other;
    });
  };
  round(5, 7, 6);
  EXPECT_EQ(alone.zeros_ms(), 5);
  EXPECT_EQ(alone.normal_ms(), 6);
  round(8, 9, 10);
  EXPECT_EQ(alone.zeros_ms(), 5) << "a slower round counts";
  EXPECT_EQ(alone.normal_ms(), 6) << "a slower round counts";
  round(8, 4, 5.5);
  EXPECT_EQ(alone.zeros_ms(), 4) << "a faster layout does not count";
  EXPECT_EQ(alone.normal_ms(), 5.5);
}

// The layout that was fastest on zeros, in whichever round, is the one that normal numbers run in.
TEST(BenchLimit, AProductAloneOfNormalNumbersHasTheBestLayout) {
  cpu::ProductAlone alone({1, 5, 11, 7, DType::F32});
  std::vector<cpu::LibraryLayout> normal;
  const auto round = [&](cpu::LibraryLayout fastest, double ms) {
    alone.measure([&](const cpu::MatmulProblem&, cpu::LibraryLayout layout, cpu::Operands of) {
      if (of == cpu::Operands::Normal) normal.push_back(layout);
      return layout == fastest ? ms : 10 * ms;
    });
  };
  round(cpu::LibraryLayout::PackedBoth, 2);
  round(cpu::LibraryLayout::PackedB, 3);
  round(cpu::LibraryLayout::PackedB, 1);
  EXPECT_EQ(normal, (std::vector{cpu::LibraryLayout::PackedBoth, cpu::LibraryLayout::PackedBoth,
                                 cpu::LibraryLayout::PackedB}));
}

// A moment of a device's clock.
Event moment(double seconds) {
  struct At : Event::State {
    double seconds = 0;
    bool has_happened() const override { return true; }
    void wait() const override {}
    double time() const override { return seconds; }
  };
  auto at = std::make_shared<At>();
  at->seconds = seconds;
  return Event(std::move(at));
}

// By the device's clock: of each instruction the least of all steps, and the mean.
TEST(BenchProfile, KeepsTheLeastOfEachInstruction) {
  Program program;
  program.name = "step";
  program.instructions.resize(3);
  program.instructions[0].call.op = Name("matmul");
  program.instructions[1].call.op = Name("add");
  program.instructions[2].call.op = Name("add");
  program.instructions[2].phase = Phase::Update;
  const CallSpec call;
  double now = 100;
  Profile profile(program);
  const auto run = [&](const char* name, std::vector<double> seconds) {
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      OpEvent e{.program = name, .instruction = static_cast<int>(i), .call = call};
      e.begin = moment(now);
      now += seconds[i];
      e.end = moment(now);
      profile.after(e);
      now += 1000;
    }
  };
  for (const double ms : profile.least_ms()) EXPECT_EQ(ms, kNever);
  run("step", {4, 2, 0.5});
  run("evaluate", {0.25, 0.25});
  run("step", {2, 6, 1});
  run("step", {3, 4, 1.5});
  EXPECT_EQ(profile.least_ms(), (std::vector{2000.0, 2000.0, 500.0}));
  EXPECT_DOUBLE_EQ(profile.products_ms(), 3000);
  EXPECT_DOUBLE_EQ(profile.update_ms(), 1000);
}

// t: a timed step, p: a profiled one, s: one that is not counted, L: a round of the limit.
std::string order_of(int steps, bool with_limit) {
  std::string order;
  const auto note = [&](char c) { return [&order, c] { order += c; }; };
  BenchTurns turns{note('s'), note('t'), note('p'), {}};
  if (with_limit) turns.limit_round = note('L');
  take_turns(steps, turns);
  return order;
}

TEST(BenchTurns, StepsAndTheLimitAreMeasuredInTurns) {
  EXPECT_EQ(order_of(8, true), "ttpLsttpLsttpLsttpL");
  EXPECT_EQ(order_of(5, true), "tpLstpLstpLsttpL");
  EXPECT_EQ(order_of(3, true), "tppLsttppL");
  EXPECT_EQ(order_of(1, true), "tppppL");
  EXPECT_EQ(order_of(5, false), "tttttpppp");
}

}  // namespace
}  // namespace aloft::cli
