#include "scalar/activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "scalar/term_text.h"

namespace aloft::scalar {
namespace {

struct Row {
  const char* name;
  double (*f)(double);
  double (*df)(double);
  float (*f32)(float);
  bool smooth;
};

const Row kRows[] = {
    {"sigmoid", sigmoid<double>, d_sigmoid<double>, sigmoid<float>, true},
    {"softplus", softplus<double>, d_softplus<double>, softplus<float>, true},
    {"log_sigmoid", log_sigmoid<double>, d_log_sigmoid<double>, log_sigmoid<float>, true},
    {"gelu", gelu<double>, d_gelu<double>, gelu<float>, true},
    {"gelu_tanh", gelu_tanh<double>, d_gelu_tanh<double>, gelu_tanh<float>, true},
    {"silu", silu<double>, d_silu<double>, silu<float>, true},
    {"mish", mish<double>, d_mish<double>, mish<float>, true},
    {"softsign", softsign<double>, d_softsign<double>, softsign<float>, true},
    {"selu", selu<double>, d_selu<double>, selu<float>, false},
    {"relu", relu<double>, d_relu<double>, relu<float>, false},
    {"relu6", relu6<double>, d_relu6<double>, relu6<float>, false},
    {"hard_sigmoid", hard_sigmoid<double>, d_hard_sigmoid<double>, hard_sigmoid<float>, false},
    {"hard_swish", hard_swish<double>, d_hard_swish<double>, hard_swish<float>, false},
};

TEST(Activations, DerivativesEqualCentralDifferences) {
  for (const Row& row : kRows)
    for (int i = -80; i <= 80; ++i) {
      const double x = i / 10.0 + 0.037, h = 1e-5;  // off the kinks at -3, 0, 3, 6
      const double slope = (row.f(x + h) - row.f(x - h)) / (2 * h);
      // Values of at most 8, rounded to 2^-53 of that and divided by 2e-5.
      EXPECT_NEAR(row.df(x), slope, 1e-9) << row.name << " at " << x;
    }
}

TEST(Activations, FloatAgreesWithDouble) {
  for (const Row& row : kRows)
    for (int i = -200; i <= 200; ++i) {
      const float x = i / 16.0f;
      const double y = row.f(x);
      // 32 roundoffs of f32; where exp(-x^2 / 2) is inside, x's own rounding grows by x^2 / 2.
      EXPECT_NEAR(row.f32(x), y, 2e-6 * std::abs(y) * std::max(1.0, 0.5 * x * x) + 1e-30)
          << row.name << " at " << x;
    }
}

TEST(Activations, AreReadAsText) {
  const TermNames names{{"x", "alpha"}, {}};
  const Var<0> x;
  EXPECT_EQ(text_of(hard_swish(x), names), "x * hard_sigmoid(x)");
  EXPECT_EQ(text_of(d_gelu(x), names), "x * 0.39894228040143265 * bell(x) + Phi(x)");
  EXPECT_EQ(text_of(d_elu(x, Var<1>()), names), "(x > 0 ? 1 : exp((x > 0 ? 0 : x)) * alpha)");
  EXPECT_EQ(text_of(d_silu(x), names), "x * slope_of_sigmoid(x) + sigmoid(x)");
}

TEST(Activations, AtNanDerivativesOfBoundsAreZero) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(d_relu(nan), 1.0);
  EXPECT_EQ(d_relu6(nan), 0.0);
  EXPECT_EQ(d_hard_sigmoid(nan), 0.0);
}

TEST(Activations, NanStaysNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Row& row : kRows) {
    EXPECT_TRUE(std::isnan(row.f(nan))) << row.name;
  }
  EXPECT_TRUE(std::isnan(leaky_relu(nan, 0.1)) && std::isnan(elu(nan, 0.1)));
}

TEST(Activations, KnownValuesAndLimits) {
  const double inf = std::numeric_limits<double>::infinity();
  // A few roundoffs of double.
  EXPECT_NEAR(gelu(1.0), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(gelu(-10.0), -7.61985302416052606e-23, 1e-36);  // 1 + erf would give 0
  EXPECT_NEAR(gelu_tanh(1.0), 0.8411919906082768, 1e-15);
  EXPECT_NEAR(silu(1.0), 0.7310585786300049, 1e-15);
  EXPECT_NEAR(softplus(0.0), std::numbers::ln2, 1e-15);
  EXPECT_EQ(sigmoid(-100.0f), std::exp(-100.0f));
  EXPECT_EQ(sigmoid(inf), 1.0);
  EXPECT_EQ(sigmoid(-inf), 0.0);
  EXPECT_EQ(softplus(inf), inf);
  EXPECT_EQ(softplus(-inf), 0.0);
  EXPECT_EQ(softplus(1000.0), 1000.0);
  EXPECT_EQ(log_sigmoid(-1000.0), -1000.0);
  EXPECT_EQ(d_relu(0.0), 0.0);
  EXPECT_EQ(d_leaky_relu(0.0, 0.1), 0.1);
  EXPECT_EQ(d_elu(0.0, 0.5), 0.5);
  EXPECT_EQ(leaky_relu(-2.0, 0.1), -0.2);
}

}  // namespace
}  // namespace aloft::scalar
