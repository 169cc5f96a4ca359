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
#include "scalar/math.h"

namespace aloft {
namespace {

struct Function {
  const char* op;
  double ulps;  // the bound that docs and functions-inl.h promise
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

std::vector<float> apply(const char* op, const std::vector<float>& x) {
  CallSpec call;
  call.op = op;
  call.in = call.out = {{DType::F32, Shape{static_cast<std::int64_t>(x.size())}}};
  const Choice choice = choose_kernel(cpu_backend(), call);
  const auto in = cpu_backend().allocate(x.size() * 4), out = cpu_backend().allocate(x.size() * 4);
  std::copy(x.begin(), x.end(), static_cast<float*>(in.get()));
  void *ins[] = {in.get()}, *outs[] = {out.get()};
  const auto prepared = choice.kernel->prepare(call);
  prepared->run({ins, outs});
  const auto* y = static_cast<const float*>(out.get());
  return {y, y + x.size()};
}

class Functions : public ::testing::TestWithParam<Function> {};

TEST_P(Functions, AreAccurateEverywhere) {
  const Function& f = GetParam();
  const std::vector<float> x = arguments(), y = apply(f.op, x);
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

INSTANTIATE_TEST_SUITE_P(Ops, Functions, ::testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.op); });

}  // namespace
}  // namespace aloft
