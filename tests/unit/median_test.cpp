#include "scalar/median.h"

#include <gtest/gtest.h>

namespace aloft::scalar {
namespace {

TEST(Median, IsTheOneInTheMiddle) {
  EXPECT_EQ(lower_median({3, 1, 2}), 2);
  EXPECT_EQ(upper_median({3, 1, 2}), 2);
  EXPECT_EQ(lower_median({5}), 5);
  EXPECT_EQ(upper_median({5}), 5);
}

TEST(Median, OfAnEvenNumberIsOneOfTheTwo) {
  EXPECT_EQ(lower_median({4, 1, 3, 2}), 2);
  EXPECT_EQ(upper_median({4, 1, 3, 2}), 3);
}

TEST(Median, OfNoTimesIsZero) { EXPECT_EQ(upper_median({}), 0); }

}  // namespace
}  // namespace aloft::scalar
