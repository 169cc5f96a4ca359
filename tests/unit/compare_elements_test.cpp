// Two tensors, element by element: the ends of their types, small numbers as well as large ones.
#include <gtest/gtest.h>

#include <cmath>

#include "observe/compare/elements.h"

namespace aloft::compare {
namespace {

// Down to the smallest numbers, and through 0.
TEST(CompareElements, UlpsAreStepsFromNumberToNumber) {
  const auto ulps = [](double n, double b, const char* type) {
    return figures_of({{n}, {1}, type}, {{b}, {1}, type}).max_ulps.value_or(-1);
  };
  struct Row {
    const char* type;
    double least, next;  // the smallest number, and that behind 1
  };
  const Row rows[] = {{"torch.float16", 0x1p-24, 1 + 0x1p-10},
                      {"torch.bfloat16", 0x1p-133, 1 + 0x1p-7},
                      {"torch.float32", 0x1p-149, 1 + 0x1p-23},
                      {"torch.float64", 0x1p-1074, 1 + 0x1p-52}};
  for (const Row& row : rows) {
    EXPECT_EQ(ulps(6 * row.least, 7 * row.least, row.type), 1) << row.type;
    EXPECT_EQ(ulps(0, row.least, row.type), 1) << row.type;
    EXPECT_EQ(ulps(-row.least, row.least, row.type), 2) << row.type;
    EXPECT_EQ(ulps(row.next, 1, row.type), 1) << row.type;
    EXPECT_EQ(ulps(1, (3 - row.next) / 2, row.type), 1) << row.type;  // the one before
    EXPECT_EQ(ulps(1, 4, row.type), 2 / (row.next - 1)) << row.type;
  }
  EXPECT_TRUE(std::isfinite(ulps(1e-310, 1.2e-310, "torch.float64")));
  EXPECT_EQ(ulps(2.8f, 0, "torch.float32"), 0x40333333);  // its bits as a number
  EXPECT_EQ(figures_of({{1}, {1}, "torch.bfloat16"}, {{1 + 0x1p-7}, {1}, "torch.float32"}).max_ulps,
            1);
}

}  // namespace
}  // namespace aloft::compare
