// Which measured rates are kept for the next start.
#include "cli/product_rates.h"

#include <gtest/gtest.h>

#include <array>

#include "temporary_folder.h"

namespace aloft::cli {
namespace {

TEST(ProductRates, MeasurementsOfTheSameSpread) {
  EXPECT_EQ(cpu::spread_of({}), 0);
  EXPECT_EQ(cpu::spread_of(std::array{2.0}), 0);
  EXPECT_DOUBLE_EQ(cpu::spread_of(std::array{2.0, 3.0, 2.5}), 0.5);
  EXPECT_DOUBLE_EQ(cpu::spread_of(std::array{3.0, 2.0, 2.0}), 0.5);
  const cpu::MatmulRates here = cpu::measure_matmul_rates(3);
  EXPECT_TRUE(here.f32_gflops > 0 && here.bf16_gflops > 0 && here.spread >= 0);
}

TEST(ProductRates, ThoseOfADisturbedMachineAreUsedOnce) {
  const TemporaryFolder folder;
  const auto at_start = [&](double rate, double spread) {
    return product_rates(folder.path(), [=] { return cpu::MatmulRates{rate, 2 * rate, spread}; });
  };
  const MeasuredRates disturbed = at_start(10, 0.31);
  EXPECT_EQ(disturbed.f32_gflops, 10);
  EXPECT_EQ(disturbed.source, "measured now, not kept: repeats differ by 31 %");
  const MeasuredRates quiet = at_start(40, cpu::kQuietSpread);
  EXPECT_EQ(quiet.f32_gflops, 40);
  EXPECT_EQ(quiet.source, "measured now");
  const MeasuredRates again = at_start(7, 0);
  EXPECT_EQ(again.f32_gflops, 40);
  EXPECT_EQ(again.bf16_gflops, 80);
  EXPECT_EQ(again.source.find("as measured before ("), 0u);
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
