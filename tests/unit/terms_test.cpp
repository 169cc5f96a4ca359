// A formula over numbers, over terms, and as text.
#include "scalar/terms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "scalar/functions.h"
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

template <int kDepth, class X>
constexpr auto roots(X x) {
  if constexpr (kDepth == 0)
    return x;
  else
    return sqrt(roots<kDepth - 1>(x));
}

// In a text whose parts may have names, too: a part that is written twice takes 2^40 times as long
// here.
TEST(Terms, EachPartIsWrittenOnce) {
  TermNames names{{"x", "y"}, {}};
  names.known = {{"x + y", "sum"}};
  std::string expected = "x";
  for (int i = 0; i < 40; ++i) expected = "sqrt(" + expected + ")";
  EXPECT_EQ(text_of(roots<40>(Var<0>()), names), expected);
}

template <class X>
constexpr auto with_part(X x) {
  return let(x + number<X>(1), [x](auto part) { return part * part - x; });
}

TEST(Terms, APartThatIsUsedAgainIsBound) {
  EXPECT_EQ(with_part(3.0), 13.0);
  int calls = 0;
  let(2.0, [&calls](double part) { return ++calls, part * part; });
  EXPECT_EQ(calls, 1);
  const TermNames names{{"x"}, {}};
  EXPECT_EQ(text_of(with_part(Var<0>()), names), "(x + 1) * (x + 1) - x");
  const auto nested = let(
      -Var<0>(), [](auto a) { return let(a * number<Var<0>>(2), [a](auto b) { return b / a; }); });
  EXPECT_EQ(text_of(nested, names), "((-x) * 2) / (-x)");
}

TEST(Terms, FunctionsAndConditionsAreText) {
  const TermNames names{{"x", "y"}, {}};
  const Var<0> x;
  const Var<1> y;
  EXPECT_EQ(text_of(mul_add(x, exp(y), inverse(x + y)), names), "x * exp(y) + 1 / (x + y)");
  EXPECT_EQ(text_of(where(either(is_nan(x), x >= y), min(x, y), pow(x, y)), names),
            "(is_nan(x) or x >= y ? min(x, y) : pow(x, y))");
  EXPECT_EQ(
      text_of(where(both(x <= y, x != y), keep_nan(x, quotient(x, y)), zero<Var<0>>()), names),
      "(x <= y and x != y ? x / y : 0)");
}

TEST(Terms, TheSmallerOfNumbersIsTheSecondWhereEitherIsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(min(nan, 1.0), 1.0);
  EXPECT_TRUE(std::isnan(min(1.0, nan)));
  EXPECT_EQ(keep_nan(2.0, 3.0), 3.0);
  EXPECT_TRUE(std::isnan(keep_nan(nan, 3.0)));
}

TEST(Terms, SignKeepsNaNAndForgetsTheSignOfZero) {
  EXPECT_EQ(sign(-3.0), -1.0);
  EXPECT_FALSE(std::signbit(sign(-0.0)));
  EXPECT_TRUE(std::isnan(sign(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace aloft::scalar
