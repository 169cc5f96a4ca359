// A formula over numbers, over terms, and as text.
#include "scalar/terms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "scalar/term_text.h"

namespace aloft::scalar {
namespace {

template <class X, class Y>
constexpr auto formula(X x, Y y) {
  return (x - number<X>(0.5) * (x - y)) / (sqrt(y) + number<X>(1));
}

TEST(Terms, AFormulaOfNumbersIsItsValue) {
  EXPECT_EQ(formula(3.0, 4.0), (3.0 - 0.5 * (3.0 - 4.0)) / 3.0);
  EXPECT_EQ(formula(3.0f, 4.0f), (3.0f - 0.5f * -1.0f) / 3.0f);
}

TEST(Terms, AFormulaOfOperandsIsItsText) {
  const TermNames names{{"x", "y"}, {}};
  EXPECT_EQ(text_of(formula(Var<0>(), Var<1>()), names), "(x - 0.5 * (x - y)) / (sqrt(y) + 1)");
  const Var<0> x;
  const Var<1> y;
  EXPECT_EQ(text_of(x - (y - x), names), "x - (y - x)");
  EXPECT_EQ(text_of(x - y - x, names), "x - y - x");
  EXPECT_EQ(text_of(x / (y * x), names), "x / (y * x)");
  EXPECT_EQ(text_of(-(x + y) * 2, names), "-(x + y) * 2");
  EXPECT_EQ(text_of(where(x < y, abs(x), sign(y)), names), "(x < y ? |x| : sign(y))");
}

TEST(Terms, APartThatHasANameIsWrittenByIt) {
  const Var<0> x;
  const Var<1> y;
  TermNames names{{"x", "y"}, {"decays"}};
  names.known = {{text_of(x + y, names), "sum"}};
  EXPECT_EQ(text_of((x + y) * (y - x), names), "sum * (y - x)");
  EXPECT_EQ(text_of(where(Flag<0>(), x + y, x), names), "(decays ? sum : x)");
}

TEST(Terms, SignKeepsNaNAndForgetsTheSignOfZero) {
  EXPECT_EQ(sign(-3.0), -1.0);
  EXPECT_FALSE(std::signbit(sign(-0.0)));
  EXPECT_TRUE(std::isnan(sign(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace aloft::scalar
