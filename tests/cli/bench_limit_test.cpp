// The limit that a benched step is held against, computed from made-up measurements: every part of
// it from above and from below, and the order in which it is measured.
#include "cli/bench_limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/bench_turns.h"
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
  program.instructions = {op("matmul", {a, b}, {c}, Phase::Forward),
                          op("add", {c, c}, {c}, Phase::Backward),
                          op("add", {b, b}, {b}, Phase::Update)};
  Plan plan;
  const auto slot = [&](const char* name, StateClass cls, bool requires_grad) {
    StateSlot& s = plan.state.emplace_back();
    s.name = Name(name), s.type = b, s.cls = cls, s.requires_grad = requires_grad;
  };
  slot("w", StateClass::Parameter, true);
  slot("frozen", StateClass::Parameter, false);
  slot("w.momentum", StateClass::Optimizer, false);
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
