// How long measured rates are kept.
#include "cli/product_rates.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "temporary_folder.h"

namespace aloft::cli {
namespace {

TEST(ProductRates, MeasurementsOfTheSameSpread) {
  EXPECT_EQ(cpu::spread_of({}), 0);
  EXPECT_EQ(cpu::spread_of(std::array{2.0}), 0);
  EXPECT_DOUBLE_EQ(cpu::spread_of(std::array{3.0, 2.0}), 0.5);
  EXPECT_DOUBLE_EQ(cpu::spread_of(std::array{2.0, 3.0, 2.5}), 0.5);
  // Three reached what the machine can do; how long others had it does not matter.
  EXPECT_DOUBLE_EQ(cpu::spread_of(std::array{9.0, 2.0, 2.5, 8.0, 2.25}), 0.25);
  const cpu::MatmulRates here = cpu::measure_matmul_rates(3);
  EXPECT_TRUE(here.f32_gflops > 0 && here.bf16_gflops > 0 && here.spread >= 0);
}

// Starts of a program with one cache, between which time passes.
class Starts {
 public:
  MeasuredRates at(double f32, double bf16, double spread) {
    return product_rates(folder_.path(), [&] {
      ++measured;
      return cpu::MatmulRates{f32, bf16, spread};
    });
  }
  // The file as it were, had it been written by so many minutes earlier.
  void pass(double minutes) {
    auto all = parse_json(read_file(file, 1 << 20));
    for (auto& entry : all)
      if (entry.contains("unsettled_at"))
        entry["unsettled_at"] = entry["unsettled_at"].get<double>() - 60 * minutes;
    TemporaryFolder::put(file, all.dump());
  }
  int measured = 0;

 private:
  TemporaryFolder folder_;

 public:
  const Path file = folder_ / "product-rates.json";
};

TEST(ProductRates, ThoseOfABusyMachineAreMeasuredOnceMoreAndLater) {
  Starts start;
  const MeasuredRates first = start.at(10, 30, 0.31);
  EXPECT_EQ(first.source, "measured now, the machine was busy: repeats differed by 31 %");
  start.pass(9);
  const MeasuredRates soon = start.at(40, 20, 0);
  EXPECT_EQ(soon.f32_gflops, 10);
  EXPECT_EQ(soon.source.find("as measured before ("), 0u);
  EXPECT_NE(soon.source.find(", the machine was busy: repeats differed by 31 %"),
            std::string::npos);
  start.pass(2);
  const MeasuredRates later = start.at(40, 20, 0.2);
  EXPECT_EQ(later.f32_gflops, 40);
  EXPECT_EQ(later.bf16_gflops, 30);  // the better of both: nothing makes a product too fast
  EXPECT_EQ(later.source, "the better of two measurements, now and before");
  start.pass(1e6);
  const MeasuredRates at_last = start.at(7, 7, 0);
  EXPECT_EQ(at_last.f32_gflops, 40);
  EXPECT_EQ(at_last.bf16_gflops, 30);
  EXPECT_EQ(start.measured, 2);
  // A clock that was set back leaves nothing waiting for years.
  Starts ahead;
  ahead.at(10, 30, 0.31);
  ahead.pass(-1e6);
  EXPECT_EQ(ahead.at(40, 80, 0).f32_gflops, 40);
}

TEST(ProductRates, ThoseOfAQuietMachineAreMeasuredOnce) {
  Starts start;
  EXPECT_EQ(start.at(40, 80, cpu::kQuietSpread).source, "measured now");
  const MeasuredRates again = start.at(7, 14, 0);
  EXPECT_EQ(again.f32_gflops, 40);
  EXPECT_EQ(again.bf16_gflops, 80);
  EXPECT_EQ(again.source, "as measured before (" + start.file.string() + ")");
  EXPECT_EQ(start.measured, 1);
}

TEST(ProductRates, AQuietMachineIsBelievedAndABusyOneOnlyWithinReason) {
  Starts quiet;
  quiet.at(10, 300, 0.31);
  quiet.pass(11);
  const MeasuredRates later = quiet.at(40, 80, 0);
  EXPECT_EQ(later.bf16_gflops, 80);
  EXPECT_EQ(later.source, "measured now");
  Starts busy;
  busy.at(10, 3000, 0.31);  // no machine is so much faster than it is a little later
  busy.pass(11);
  const MeasuredRates second = busy.at(40, 80, 0.2);
  EXPECT_EQ(second.bf16_gflops, 3000);  // of two nobody knows which is wrong
  EXPECT_EQ(second.source,
            "the better of two measurements, now and before, the machine was busy: repeats "
            "differed by 20 %");
  busy.pass(11);
  const MeasuredRates third = busy.at(50, 70, 0.2);
  EXPECT_EQ(third.bf16_gflops, 80);
  EXPECT_EQ(third.f32_gflops, 50);
  EXPECT_EQ(third.source, "the better of two measurements, now and before");
  busy.pass(11);
  EXPECT_EQ(busy.at(7, 7, 0).bf16_gflops, 80);
}

TEST(ProductRates, OneVeryBusyMomentDoesNotReplaceAGoodRate) {
  Starts start;
  start.at(218, 449, 0.31);
  start.pass(11);
  const MeasuredRates busy = start.at(218, 30, 0.2);
  EXPECT_EQ(busy.f32_gflops, 218);
  EXPECT_EQ(busy.bf16_gflops, 449);
  start.pass(11);
  const MeasuredRates later = start.at(200, 400, 0.2);
  EXPECT_EQ(later.bf16_gflops, 449);
  EXPECT_EQ(later.source, "the better of two measurements, now and before");
  start.pass(11);
  start.at(7, 7, 0);
  EXPECT_EQ(start.measured, 3);
}

TEST(ProductRates, WhatNoProcessorDoesIsMeasuredAgain) {
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, double>>{{"f32_gflops", 1e300},
                                                             {"bf16_gflops", 1e7},
                                                             {"bf16_gflops", 1e-300},
                                                             {"f32_gflops", -1},
                                                             {"spread", -5},
                                                             {"spread", 1e9}}) {
    Starts start;
    start.at(40, 80, 0);
    auto all = parse_json(read_file(start.file, 1 << 20));
    all.begin().value()[key] = value;
    TemporaryFolder::put(start.file, all.dump());
    EXPECT_EQ(start.at(50, 90, 0).source, "measured now") << key << value;
    EXPECT_EQ(start.at(7, 7, 0).bf16_gflops, 90);
  }
}

TEST(ProductRates, TwoProgramsAtOnceLoseNeithersFigures) {
  const TemporaryFolder folder;
  const auto start = [&](double rate, double spread, const std::function<void()>& meanwhile) {
    return product_rates(folder.path(), [&] {
      meanwhile();
      return cpu::MatmulRates{rate, 2 * rate, spread};
    });
  };
  const Path file = folder / "product-rates.json";
  const auto another_kind = [&] {
    folder.put(file, R"({"another processor": {"f32_gflops": 1}})");
  };
  EXPECT_EQ(start(40, 0, another_kind).source, "measured now");
  EXPECT_TRUE(parse_json(read_file(file, 1 << 20)).contains("another processor"));
  std::filesystem::remove(file);
  const auto same_kind = [&] { start(50, 0, [] {}); };
  const MeasuredRates shown = start(40, 0, same_kind);
  EXPECT_EQ(shown.f32_gflops, 50);
  EXPECT_EQ(shown.source, "as measured before (" + file.string() + ")");
}

TEST(ProductRates, ThoseThatNobodySaysWereMeasuredInQuietAreMeasuredAgain) {
  const TemporaryFolder folder;
  product_rates(folder.path(), [] { return cpu::MatmulRates{40, 80, 0}; });
  const Path file = folder / "product-rates.json";
  std::string text = read_file(file, 1 << 20);
  text.replace(text.find("spread"), 6, "before");
  folder.put(file, text);
  const MeasuredRates now = product_rates(folder.path(), [] {
    return cpu::MatmulRates{50, 90, 0};
  });
  EXPECT_EQ(now.f32_gflops, 50);
}

}  // namespace
}  // namespace aloft::cli
