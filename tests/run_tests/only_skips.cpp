// A program that has nothing to show for itself: it must end as skipped (77), not as passed.
#include <gtest/gtest.h>

TEST(OnlySkips, SkipsItsOnlyTest) { GTEST_SKIP() << "as it shall"; }
