// Formulas of elements that stand once in scalar/: what a kernel computes in vectors, and what the
// op of a derivative means as a graph, are the formula of numbers.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "ops/activation.h"
#include "ops/clamp.h"
#include "ops/evaluate.h"
#include "ops/op.h"
#include "scalar/activations.h"

namespace aloft {
namespace {

// Every exponent, both signs, what is no number, and the places where formulas turn.
std::vector<float> arguments() {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0f, -0.0f, kInf, -kInf, std::numeric_limits<float>::quiet_NaN(),
                          3.0f, -3.0f, 6.0f, 0.7f,  -0.7f};
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 49999)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (int i = -8000; i <= 8000; ++i) x.push_back(static_cast<float>(i) * 1e-3f);
  return x;
}

std::vector<float> apply(const char* op, const Attrs& attrs,
                         std::vector<std::vector<float>> operands) {
  CallSpec call{
      op, attrs, {}, {{DType::F32, Shape{static_cast<std::int64_t>(operands[0].size())}}}};
  std::vector<void*> in;
  for (std::vector<float>& x : operands) {
    call.in.push_back(call.out[0]);
    in.push_back(x.data());
  }
  std::vector<float> result(operands[0].size());
  void* out[] = {result.data()};
  choose_kernel(cpu_backend(), call).kernel->prepare(call)->run({in, out});
  return result;
}

bool are_same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

struct OfOne {
  const char* op;
  float (*formula)(float x, float alpha);
};

// Formulas of comparisons and of operations that processors round to the nearest: their vectors
// have the bits of the same formula in float.
#define ROW(name, ...)                                                                     \
  {                                                                                        \
#name, [](float x, [[maybe_unused]] float alpha) { return scalar::name(__VA_ARGS__); } \
  }
#define ROW_OF_GRAD(name, ...)                                                              \
  {                                                                                         \
#name "_grad",                                                                          \
        [](float x, [[maybe_unused]] float alpha) { return scalar::d_##name(__VA_ARGS__); } \
  }
const OfOne kOfOne[] = {
    ROW(neg, x),
    ROW(abs, x),
    ROW(sign, x),
    ROW(square, x),
    ROW(sqrt, x),
    ROW(rsqrt, x),
    ROW(reciprocal, x),
    ROW(floor, x),
    ROW(ceil, x),
    ROW(round, x),
    ROW(relu, x),
    ROW(relu6, x),
    ROW(softsign, x),
    ROW(hard_sigmoid, x),
    ROW(hard_swish, x),
    ROW_OF_GRAD(relu, x),
    ROW_OF_GRAD(relu6, x),
    ROW_OF_GRAD(softsign, x),
    ROW_OF_GRAD(hard_sigmoid, x),
    ROW_OF_GRAD(hard_swish, x),
};
const OfOne kOfOneAndAlpha[] = {ROW(leaky_relu, x, alpha), ROW_OF_GRAD(leaky_relu, x, alpha)};
#undef ROW
#undef ROW_OF_GRAD

void expect_bits(const OfOne& row, const Attrs& attrs) {
  const std::vector<float> x = arguments(), ones(x.size(), 1.0f);
  const bool is_grad = std::string_view(row.op).ends_with("_grad");
  const std::vector<float> y =
      is_grad ? apply(row.op, attrs, {ones, x}) : apply(row.op, attrs, {x});
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_TRUE(are_same(y[i], row.formula(x[i], 0.3f)))
        << row.op << "(" << x[i] << ") = " << y[i] << ", not " << row.formula(x[i], 0.3f);
}

TEST(Formulas, OfOneOperandHaveTheirBitsInVectors) {
  for (const OfOne& row : kOfOne) expect_bits(row, {});
  for (const OfOne& row : kOfOneAndAlpha) expect_bits(row, to_attrs(ActivationAttrs{0.3}));
}

TEST(Formulas, OfTwoOperandsHaveTheirBitsInVectors) {
  struct OfTwo {
    const char* op;
    float (*formula)(float, float);
  };
#define ROW(name)                                              \
  {                                                            \
#name, [](float a, float b) { return scalar::name(a, b); } \
  }
  const OfTwo rows[] = {
      ROW(add),     ROW(sub),     ROW(mul), ROW(div),      ROW(squared_difference),
      ROW(maximum), ROW(minimum), ROW(mod), ROW(remainder)};
#undef ROW
  const std::vector<float> a = arguments();
  std::vector<float> b(a.rbegin(), a.rend());
  for (std::size_t i = 0; i < b.size(); i += 3) b[i] = a[i];  // ties too
  for (const OfTwo& row : rows) {
    const std::vector<float> y = apply(row.op, {}, {a, b});
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_TRUE(are_same(y[i], row.formula(a[i], b[i])))
          << row.op << "(" << a[i] << ", " << b[i] << ") = " << y[i];
  }
}

TEST(Formulas, OfBoundsHaveTheirBitsInVectors) {
  const std::vector<float> x = arguments(), y = apply("clamp", to_attrs(ClampAttrs{-0.7, 6}), {x});
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_TRUE(are_same(y[i], scalar::clamp(x[i], -0.7f, 6.0f))) << x[i];
}

// The graph is made of the ops that formulas name (a sigmoid), the numbers of their parts: both
// round, which is all they differ by.
TEST(Formulas, OfDerivativesAreWhatTheirOpsMean) {
  struct Derivative {
    const char* op;
    double (*formula)(double x, double alpha);
  };
#define ROW(name, ...)                                                                        \
  {                                                                                           \
#name "_grad",                                                                            \
        [](double x,                                                                          \
           [[maybe_unused]] double alpha) -> double { return scalar::d_##name(__VA_ARGS__); } \
  }
  const Derivative rows[] = {
      ROW(relu, x),         ROW(relu6, x),       ROW(gelu, x),     ROW(gelu_tanh, x), ROW(silu, x),
      ROW(sigmoid, x),      ROW(log_sigmoid, x), ROW(softplus, x), ROW(softsign, x),  ROW(selu, x),
      ROW(hard_sigmoid, x), ROW(hard_swish, x),  ROW(mish, x)};
  const Derivative of_alpha[] = {ROW(elu, x, alpha), ROW(leaky_relu, x, alpha)};
#undef ROW
  HostArray x = HostArray::zeros(DType::F64, {401}), dy = x;
  for (int i = 0; i < 401; ++i) {
    x[i] = (i - 200) * 0.1;  // the kinks at -3, 0, 3 and 6 too
    dy[i] = 1.0;
  }
  const auto expect = [&](const Derivative& row, const Attrs& attrs) {
    const HostArray y = evaluate_op(op_named(row.op), attrs, std::vector{dy, x})[0];
    for (int i = 0; i < 401; ++i)
      EXPECT_NEAR(y[i], row.formula(x[i], 0.3), 1e-14) << row.op << " at " << double(x[i]);
  };
  for (const Derivative& row : rows) expect(row, {});
  for (const Derivative& row : of_alpha) expect(row, to_attrs(ActivationAttrs{0.3}));
}

}  // namespace
}  // namespace aloft
