// Elementary functions of the processor on f32 numbers from the whole range, every exponent, both
// signs, infinities and NaN: the largest error in units in the last place of the exact result.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "scalar/activations.h"

namespace aloft {
namespace {

struct Function {
  const char* op;
  double ulps;  // none below what functions-inl.h promises
  std::function<double(double)> exact;
  // A product with x: where the other factor is a denormal, x multiplies its absolute error.
  bool is_product = false;
};

std::vector<float> arguments() {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::lowest(),
                          std::numeric_limits<float>::min(),
                          std::numeric_limits<float>::denorm_min()};
  // A stride without common factors with any power of two meets every exponent and low bit.
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 9973)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  // And densely where most arguments of a network lie.
  for (int i = -200000; i <= 200000; ++i) x.push_back(static_cast<float>(i) * 1e-4f);
  return x;
}

// Distance of neighbours at |y|, at least that of denormals.
double spacing(double y) {
  int exponent = 0;
  std::frexp(y, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

std::vector<float> apply(const char* op, std::vector<std::vector<float>> operands) {
  CallSpec call;
  call.op = op;
  call.out = {{DType::F32, Shape{static_cast<std::int64_t>(operands[0].size())}}};
  std::vector<float> result(operands[0].size());
  std::vector<void*> in;
  for (std::vector<float>& x : operands) {
    call.in.push_back(call.out[0]);
    in.push_back(x.data());
  }
  const Choice choice = choose_kernel(cpu_backend(), call);
  void* out[] = {result.data()};
  choice.kernel->prepare(call)->run({in, out});
  return result;
}

class Functions : public ::testing::TestWithParam<Function> {};

TEST_P(Functions, AreAccurateEverywhere) {
  const Function& f = GetParam();
  const std::vector<float> x = arguments(), y = apply(f.op, {x});
  double worst = 0;
  float where = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = f.exact(static_cast<double>(x[i]));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(y[i])) << f.op << "(" << x[i] << ") = " << y[i] << ", not NaN";
      continue;
    }
    const auto rounded = static_cast<float>(want);
    if (y[i] == rounded) continue;
    const double unit =
        spacing(want) + (f.is_product ? std::abs(static_cast<double>(x[i])) * 0x1p-149 : 0);
    const double ulps = std::isinf(rounded) && std::abs(y[i]) > 3.4e38f
                            ? 1
                            : std::abs(static_cast<double>(y[i]) - want) / unit;
    if (!(ulps <= worst)) {
      worst = ulps;
      where = x[i];
    }
  }
  RecordProperty("ulps", std::to_string(worst));
  EXPECT_LE(worst, f.ulps) << f.op << " at " << where;
  std::printf("%-12s %.2f ulp at %g\n", f.op, worst, static_cast<double>(where));
}

// How a loop is cut and fused decides who an element's neighbours are.
TEST_P(Functions, OfAnElementDoesNotDependOnItsNeighbours) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const char* op = GetParam().op;
  std::vector<float> x;
  for (int i = -2000; i <= 2000; ++i) x.push_back(static_cast<float>(i) * 0.37f);
  const std::vector<float> alone = apply(op, {x});
  for (const float far :
       {1e30f, -31000.0f, kInf, std::numeric_limits<float>::quiet_NaN(), 1e-40f}) {
    std::vector<float> among = x;
    for (std::size_t i = 0; i < among.size(); i += 7) among[i] = far;
    const std::vector<float> y = apply(op, {among});
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (i % 7 == 0) continue;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(y[i]), std::bit_cast<std::uint32_t>(alone[i]))
          << op << "(" << x[i] << ") beside " << far;
    }
  }
}

TEST_P(Functions, KeepTheSignOfZeros) {
  const Function& f = GetParam();
  for (const float x : {0.0f, -0.0f}) {
    const auto want = static_cast<float>(f.exact(static_cast<double>(x)));
    if (want != 0) continue;
    for (const float y : apply(f.op, {std::vector<float>(33, x)}))
      EXPECT_EQ(std::signbit(y), std::signbit(want)) << f.op << "(" << x << ") = " << y;
  }
}

double plain(double (*f)(double), double x) { return f(x); }

const Function kFunctions[] = {
    {"exp", 2, [](double x) { return plain(std::exp, x); }},
    {"expm1", 4, [](double x) { return plain(std::expm1, x); }},
    {"log", 4, [](double x) { return plain(std::log, x); }},
    {"log1p", 4, [](double x) { return plain(std::log1p, x); }},
    {"sin", 4, [](double x) { return plain(std::sin, x); }},
    {"cos", 4, [](double x) { return plain(std::cos, x); }},
    {"tan", 4, [](double x) { return plain(std::tan, x); }},
    {"asin", 4, [](double x) { return plain(std::asin, x); }},
    {"acos", 4, [](double x) { return plain(std::acos, x); }},
    {"atan", 4, [](double x) { return plain(std::atan, x); }},
    {"sinh", 4, [](double x) { return plain(std::sinh, x); }},
    {"cosh", 4, [](double x) { return plain(std::cosh, x); }},
    {"tanh", 4, [](double x) { return plain(std::tanh, x); }},
    {"erf", 4, [](double x) { return plain(std::erf, x); }},
    {"rsqrt", 2, [](double x) { return 1 / std::sqrt(x); }},
    {"sigmoid", 4, [](double x) { return scalar::sigmoid(x); }},
    {"softplus", 4, [](double x) { return scalar::softplus(x); }},
    {"silu", 4, [](double x) { return scalar::silu(x); }, true},
    {"gelu", 6, [](double x) { return scalar::gelu(x); }, true},
    {"mish", 8, [](double x) { return scalar::mish(x); }, true},
};

// Distance of `y` from the exact result in units in the last place; infinite where a NaN, a sign or
// an infinity is wrong.
double power_error(float x, float exponent, float y) {
  const double want = std::pow(static_cast<double>(x), static_cast<double>(exponent));
  const auto rounded = static_cast<float>(want);
  if (std::isnan(want)) return std::isnan(y) ? 0 : INFINITY;
  if (std::signbit(rounded) != std::signbit(y)) return INFINITY;
  if (y == rounded) return 0;
  if (std::isinf(rounded)) return std::abs(y) > 3.4e38f ? 1 : INFINITY;
  return std::abs(static_cast<double>(y) - want) / spacing(want);
}

TEST(Power, IsAccurateEverywhere) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> some = {0.0f,    0.5f,     0.75f,       1.0f,    1.5f,    2.0f,  3.0f,
                             7.0f,    0.33333f, 1e-3f,       1e3f,    1e-40f,  1e30f, 16777215.0f,
                             0x1p24f, 3.4e38f,  1.4013e-45f, 1.0001f, 0.9999f, kInf};
  for (std::size_t i = 0, n = some.size(); i < n; ++i) some.push_back(-some[i]);
  some.push_back(std::numeric_limits<float>::quiet_NaN());
  std::vector<float> x, y;
  const auto add = [&](float a, float b) {
    x.push_back(a);
    y.push_back(b);
  };
  for (float a : some)
    for (float b : some) add(a, b);
  // Positive numbers of every exponent, with results over the whole range.
  for (std::uint64_t bits = 1; bits < 0x7f800000u; bits += 9973) {
    const float a = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    add(a, static_cast<float>(bits % 311 - 155.0) / static_cast<float>(std::log2(a)));
    add(a, static_cast<float>(bits % 2003 - 1001.0) * 1e-2f);
  }
  // And near 1, with large exponents.
  for (int i = -50000; i <= 50000; ++i)
    add(1.0f + static_cast<float>(i) * 1e-5f, static_cast<float>(i % 1999));
  const std::vector<float> z = apply("pow", {x, y});
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = power_error(x[i], y[i], z[i]);
    EXPECT_LE(error, 1.5) << x[i] << " to the power " << y[i] << " gives " << z[i];
    worst = std::max(worst, error);
  }
  std::printf("pow          %.2f ulp\n", worst);
}

INSTANTIATE_TEST_SUITE_P(Ops, Functions, ::testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.op); });

}  // namespace
}  // namespace aloft
