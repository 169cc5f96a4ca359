// Results that bf16 and f16 hold, of steps that they do not hold: counts beyond their range, sums
// of many, squares, exponents. Eagerly, compiled, and in a module that a precision governs.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "backends/cpu/cpu_backend.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/identity.h"
#include "ops/lerp.h"
#include "ops/logsumexp.h"
#include "ops/losses.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "ops/var.h"
#include "precision/recipe.h"
#include "types/tolerance.h"

namespace aloft {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

Tensor gradient(const Tensor& y, const Tensor& x) {
  return y.emitter()->gradients(y, scalar_like(y, 1), std::vector{x}, {})[0];
}

// "": none.
Policy policy_of(std::string_view precision) {
  return precision.empty() ? Policy() : Policy(parse_precision(precision));
}

// The first element of x's gradient, which is the same number eagerly and compiled. f's call
// stands in a module under `precision`; "": under none.
double first_gradient(const Function& f, const Tensor& x, const char* precision = "") {
  const auto step = [&](const Tensor& t) {
    const Tensor y = [&] {
      ModuleScope scope("module", policy_of(precision));
      return f(t);
    }();
    return cast(gradient(y, t) * 1.0, DType::F64);
  };
  const double eagerly = step(x).to_vector()[0];
  auto program = compile(step, {.partial_batches = false});
  EXPECT_EQ(program(x).to_vector()[0], eagerly) << "compiled, under '" << precision << "'";
  return eagerly;
}

// Within `roundings` of the low type.
void expect_near(double got, double want, DType low, int roundings = 1) {
  EXPECT_NEAR(got, want, roundings * allowed_error(low, 1, want)) << name_of(low);
}

class LowTypes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { use_device(cpu_device()); }
};

constexpr const char* kLow[] = {"O2:fp16", "O3:fp16"};

TEST_F(LowTypes, AMeanOfManyHasAGradient) {
  const Function f = [](const Tensor& x) { return mean(x); };
  const Shape shape{128, 784};
  const double want = 1.0 / (128 * 784);
  expect_near(first_gradient(f, full(shape, 0.5, DType::F16)), want, DType::F16);
  for (const char* precision : kLow)
    expect_near(first_gradient(f, full(shape, 0.5), precision), want, DType::F16);
}

TEST_F(LowTypes, ManyTiesShareTheGradientOfTheLargest) {
  for (const Function& f : {Function([](const Tensor& x) { return max(x); }),
                            Function([](const Tensor& x) { return min(x); })}) {
    const double want = 1.0 / (1 << 16);
    expect_near(first_gradient(f, full({1 << 16}, 3, DType::F16)), want, DType::F16);
    for (const char* precision : kLow)
      expect_near(first_gradient(f, full({1 << 16}, 3), precision), want, DType::F16);
    // bf16 counts to 256.
    expect_near(first_gradient(f, full({257}, 3, DType::BF16)), 1.0 / 257, DType::BF16);
  }
}

TEST_F(LowTypes, LossesOfManyRowsHaveGradients) {
  constexpr int kRows = 70000;
  const Function likelihood = [](const Tensor& x) {
    return nll_loss(x, full({kRows}, 0, DType::I32));
  };
  const Function squares = [](const Tensor& x) { return mse_loss(x, detach(-x)); };
  for (const char* precision : kLow) {
    const double row = first_gradient(likelihood, full({kRows, 2}, -1), precision);
    expect_near(row, -1.0 / kRows, DType::F16);
    const double element = first_gradient(squares, full({2 * kRows}, 1), precision);
    expect_near(element, 2.0 / kRows, DType::F16, 2);
  }
}

TEST_F(LowTypes, AVarianceOfManyHasAGradient) {
  constexpr int kCount = 100000;
  std::vector<float> values(kCount, -1);
  for (int i = 0; i < kCount; i += 2) values[i] = 1;
  const Function f = [](const Tensor& x) { return var(x) * 1024; };
  const Tensor x = from_floats(values, {kCount});
  const double want = 2.0 * 1024 / (kCount - 1);
  expect_near(first_gradient(f, cast(x, DType::F16)), want, DType::F16, 2);
  for (const char* precision : kLow)
    expect_near(first_gradient(f, x, precision), want, DType::F16, 2);
}

TEST_F(LowTypes, LogSumExpOfManyIsFinite) {
  constexpr int kCount = 70000;
  const Function f = [](const Tensor& x) { return logsumexp(x); };
  const Tensor zeros = full({1, kCount}, 0, DType::F16);
  expect_near(f(zeros).item(), std::log(kCount), DType::F16);
  expect_near(first_gradient(f, zeros), 1.0 / kCount, DType::F16);
  for (const char* precision : kLow)
    expect_near(first_gradient(f, full({1, kCount}, 0), precision), 1.0 / kCount, DType::F16);
  const double far = -6.90625;  // and ln(1,000) = 6.90776
  expect_near(f(full({1, 1000}, far, DType::BF16)).item(), far + std::log(1000), DType::BF16);
  auto program = compile(f, {.partial_batches = false});
  EXPECT_EQ(program(zeros).item(), f(zeros).item());
}

TEST_F(LowTypes, AnglesHaveGradientsAtEveryDistance) {
  // d atan2(a, b) / da = b / (a^2 + b^2), and along b that of a with the other sign.
  const Function by_a = [](const Tensor& x) { return sum(atan2(x, detach(x))); };
  const Function by_b = [](const Tensor& x) { return sum(atan2(detach(x), x)); };
  const auto at = [&](double distance, DType type) {
    const Tensor x = full({3}, distance, type);
    const double want = 1 / (2 * x.to_vector()[0]);
    expect_near(first_gradient(by_a, x), want, type, 2);
    expect_near(first_gradient(by_b, x), -want, type, 2);
  };
  for (const double distance : {1e-4, 1.0, 200.0, 6e4}) at(distance, DType::F16);
  for (const double distance : {1e-37, 1e-23, 1e20, 2e37}) {
    at(distance, DType::F32);
    at(distance, DType::BF16);
  }
  for (const double distance : {1e-300, 1e300}) at(distance, DType::F64);
}

// Their quotients are just below a whole number, to which a low type rounds them.
TEST_F(LowTypes, RemaindersHaveTheWholeQuotientForAGradient) {
  const struct {
    double a, b;
    DType type;
  } cases[] = {{8.6875, 0.322265625, DType::BF16},   {9, 0.53125, DType::BF16},
               {-7.4375, -2.484375, DType::BF16},    {8.1875, 0.09375, DType::BF16},
               {8.2109375, 1.642578125, DType::F16}, {2.5, 0.001, DType::F32}};
  for (const auto& c : cases) {
    const Tensor a = full({1}, c.a, c.type), b = full({1}, c.b, c.type);
    const double quotient = a.to_vector()[0] / b.to_vector()[0];
    const Function by_mod = [&](const Tensor& x) { return sum(mod(full({1}, c.a, c.type), x)); };
    const Function by_rest = [&](const Tensor& x) {
      return sum(remainder(full({1}, c.a, c.type), x));
    };
    expect_near(first_gradient(by_mod, b), -std::trunc(quotient), c.type);
    expect_near(first_gradient(by_rest, b), -std::floor(quotient), c.type);
  }
}

TEST_F(LowTypes, SlopesMayLeaveTheRangeBeforeTheyMeetTheCotangent) {
  const Tensor x = full({3}, 1e-5, DType::F16);  // 1 / x is beyond f16
  const Function f = [](const Tensor& t) { return sum(log(t) * 0x1p-7); };
  expect_near(first_gradient(f, x), 0x1p-7 / x.to_vector()[0], DType::F16);
}

TEST_F(LowTypes, SecondGradientsOfActivationsAreRoundedOnce) {
  const Tensor x = full({3}, 2.5, DType::BF16);
  const Function slope = [](const Tensor& t) { return sum(gradient(sum(silu(t)), t)); };
  const double s = 1 / (1 + std::exp(-2.5));
  expect_near(first_gradient(slope, x), s * (1 - s) * (2 + 2.5 * (1 - 2 * s)), DType::BF16);
}

TEST_F(LowTypes, ExponentsAreNotRounded) {
  for (const DType low : {DType::BF16, DType::F16}) {
    const double exponent = low == DType::BF16 ? 3.3 : 2.2003;
    const Tensor x = full({3}, 100, low);
    const Function f = [&](const Tensor& t) { return sum(pow(t, exponent)); };
    expect_near(pow(x, exponent).to_vector()[0], std::pow(100, exponent), low);
    EXPECT_EQ(name_of(pow(x, exponent).dtype()), name_of(low));
    expect_near(first_gradient(f, x), exponent * std::pow(100, exponent - 1), low, 2);
    EXPECT_EQ(pow(x, 2).to_vector(), (x * x).to_vector());
  }
  const Function f = [](const Tensor& t) { return sum(pow(t, 3.3)) * 0x1p-20; };
  expect_near(first_gradient(f, full({3}, 100), "O2:bf16"), 0x1p-20 * 3.3 * std::pow(100, 2.3),
              DType::BF16, 2);
}

double first(const Tensor& x) { return x.to_vector()[0]; }

// The first result of f, the same eagerly and compiled, of x's type.
double first_result(const Function& f, const Tensor& x) {
  const Tensor y = f(x);
  EXPECT_EQ(name_of(y.dtype()), name_of(x.dtype()));
  auto program = compile(f, {.partial_batches = false});
  EXPECT_EQ(program(x).to_vector(), y.to_vector());
  return first(y);
}

TEST_F(LowTypes, NumbersAreNotRounded) {
  const auto at = [](double value, DType type, const Function& f) {
    return first_result(f, full({3}, value, type));
  };
  const DType F16 = DType::F16, BF = DType::BF16;
  expect_near(at(1000, F16, [](const Tensor& h) { return h / 1e5; }), 0.01, F16);
  expect_near(at(1000, F16, [](const Tensor& h) { return 1e5 / h; }), 100, F16);
  expect_near(at(1000, F16, [](const Tensor& h) { return h * 1e-8; }), 1e-5, F16);
  expect_near(at(0.0009765625, F16, [](const Tensor& h) { return h * 1e5; }), 97.65625, F16);
  expect_near(at(60000, F16, [](const Tensor& h) { return h - 100000; }), -40000, F16);
  expect_near(at(60000, F16, [](const Tensor& h) { return 100000 - h; }), 40000, F16);
  expect_near(at(-40000, F16, [](const Tensor& h) { return h + 1e5; }), 60000, F16);
  expect_near(at(-40000, F16, [](const Tensor& h) { return 1e5 + h; }), 60000, F16);
  EXPECT_EQ(at(1, F16, [](const Tensor& mask) { return (1.0 - mask) * -1e9; }), 0);
  EXPECT_EQ(at(1000, F16, [](const Tensor& h) { return maximum(h, -1e5) + minimum(h, 1e5); }),
            2000);
  EXPECT_EQ(at(5, BF, [](const Tensor& h) { return h * 257; }), 1288);  // 1,285
  EXPECT_EQ(at(5, BF, [](const Tensor& h) { return 257 * h; }), 1288);
  EXPECT_EQ(at(256, BF, [](const Tensor& h) { return h - 257; }), -1);
  EXPECT_EQ(at(256, BF, [](const Tensor& h) { return h * 2 + 1; }), 512);
}

TEST_F(LowTypes, NumbersAreComparedAsTheyAre) {
  const Tensor h = full({3}, 0.1, DType::F16), far = full({3}, 256, DType::BF16);
  const auto answer = [](const Tensor& yes) { return first(cast(yes, DType::F32)) != 0; };
  EXPECT_TRUE(answer(less(h, 0.1)));  // 0.09998
  EXPECT_FALSE(answer(equal(h, 0.1)));
  EXPECT_TRUE(answer(less(far, 257)));
  EXPECT_FALSE(answer(greater_equal(far, 257)));
  EXPECT_TRUE(answer(equal(far, 256)));
  auto program = compile([](const Tensor& x) { return less(x, 0.1); }, {.partial_batches = false});
  EXPECT_TRUE(answer(program(h)));
  // 0.3 is 0.30005 in f16: within the bounds, so the gradient passes.
  const Function clamped = [](const Tensor& x) { return sum(clamp(x, 0.3, 1.0)); };
  EXPECT_EQ(first_gradient(clamped, full({3}, 0.3, DType::F16)), 1);
}

TEST_F(LowTypes, GradientsTakeNumbersAsTheyAre) {
  const Tensor x = full({3}, 1000, DType::F16);
  const Function divided = [](const Tensor& h) { return sum(h / 1e5) * 1024; };
  expect_near(first_gradient(divided, x), 1024 / 1e5, DType::F16, 2);
  const Function under = [](const Tensor& h) { return sum(1e5 / h); };
  expect_near(first_gradient(under, x), -0.1, DType::F16, 2);
}

// In a module, whatever its operand's type: a policy's low type is as narrow.
TEST_F(LowTypes, NumbersAreNotRoundedUnderAPrecision) {
  const Function f = [](const Tensor& h) { return h / 1e5; };
  for (const char* precision : {"O0", "O1:fp16", "O2:fp16", "O3:fp16"})
    for (const DType type : {DType::F32, DType::F16}) {
      SCOPED_TRACE(std::string(precision) + " " + std::string(name_of(type)));
      const Tensor x = full({3}, 1000, type);
      const auto in_module = [&](const Function& op) {
        return [=](const Tensor& h) {
          ModuleScope scope("module", policy_of(precision));
          return op(h);
        };
      };
      const Tensor y = in_module(f)(x);
      const Tensor exact = in_module([](const Tensor& h) { return h / 2; })(x);
      EXPECT_EQ(name_of(y.dtype()), name_of(exact.dtype()));
      auto program = compile(in_module(f), {.partial_batches = false});
      EXPECT_EQ(program(x).to_vector(), y.to_vector());
      expect_near(first(y), 0.01, DType::F16);
      const Function loss = [&](const Tensor& h) { return sum(f(h)) * 1024; };
      expect_near(first_gradient(loss, x, precision), 1024 / 1e5, DType::F16, 2);
      const Function power = [](const Tensor& h) { return sum(pow(h, 1.2003)); };
      expect_near(first_gradient(power, x, precision), 1.2003 * std::pow(1000, 0.2003), DType::F16,
                  2);
    }
}

TEST_F(LowTypes, TheGradientOfASmallNormIsADirection) {
  const Tensor x = cast(from_floats({4e-6f, 3e-6f}, {2}), DType::F16);
  const Function f = [](const Tensor& t) { return norm(t); };
  EXPECT_NEAR(first_gradient(f, x), 0.8, 0.02);                         // both are denormal
  EXPECT_EQ(first_gradient(f, from_floats({4e-30f, 3e-30f}, {2})), 0);  // of the norm 0
  for (const char* precision : kLow) EXPECT_NEAR(first_gradient(f, x, precision), 0.8, 0.02);
}

TEST_F(LowTypes, WhatLiesBetweenFarNumbersIsFinite) {
  const Tensor far = full({3}, 60000, DType::F16), half = full({}, 0.5, DType::F16);
  const Function f = [&](const Tensor& x) { return lerp(x, -detach(x), full({}, 0.5, x.dtype())); };
  EXPECT_EQ(first_result(f, far), 0);
  EXPECT_EQ(first(lerp(far, -far, half)), 0);
  const Function loss = [&](const Tensor& x) { return sum(f(x)); };
  EXPECT_EQ(first_gradient(loss, far), 0.5);
  for (const char* precision : kLow) EXPECT_EQ(first_gradient(loss, far, precision), 0.5);
}

}  // namespace
}  // namespace aloft
