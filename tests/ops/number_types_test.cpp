// What docs/number-types.md promises: in which type operands of different types meet, eagerly and
// compiled, and that integers are exact over their whole range, wrapping around at its ends.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "ops/arg_reduce.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/compare.h"
#include "ops/concat.h"
#include "ops/constant.h"
#include "ops/cumsum.h"
#include "ops/reduce.h"
#include "ops/slice.h"
#include "ops/sort.h"
#include "ops/unary.h"
#include "ops/where.h"

namespace aloft {
namespace {

using Longs = std::vector<std::int64_t>;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;  // the first that no double holds

constexpr DType F64 = DType::F64, F32 = DType::F32, BF = DType::BF16, F16 = DType::F16,
                I64 = DType::I64, I32 = DType::I32, U8 = DType::U8, I8 = DType::I8,
                Bool = DType::Bool;

// torch.promote_types, but for u8 with i8, which is int16 there.
constexpr DType kMeet[9][9] = {
    {F64, F64, F64, F64, F64, F64, F64, F64, F64}, {F64, F32, F32, F32, F32, F32, F32, F32, F32},
    {F64, F32, BF, F32, BF, BF, BF, BF, BF},       {F64, F32, F32, F16, F16, F16, F16, F16, F16},
    {F64, F32, BF, F16, I64, I64, I64, I64, I64},  {F64, F32, BF, F16, I64, I32, I32, I32, I32},
    {F64, F32, BF, F16, I64, I32, U8, I32, U8},    {F64, F32, BF, F16, I64, I32, I32, I8, I8},
    {F64, F32, BF, F16, I64, I32, U8, I8, Bool},
};

class NumberTypes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { use_device(cpu_device()); }
};

Tensor of_type(DType t, int value) { return cast(from_ints({value, value}, {2}), t); }

struct Pair {
  const char* name;
  Tensor (*f)(const Tensor&, const Tensor&);
  enum Result { Meet, Quotient, Truth } result;
  double value;  // for 3 and 2
};
const Pair kPairs[] = {
    {"add", [](const Tensor& a, const Tensor& b) { return a + b; }, Pair::Meet, 5},
    {"sub", [](const Tensor& a, const Tensor& b) { return a - b; }, Pair::Meet, 1},
    {"mul", [](const Tensor& a, const Tensor& b) { return a * b; }, Pair::Meet, 6},
    {"div", [](const Tensor& a, const Tensor& b) { return a / b; }, Pair::Quotient, 1.5},
    {"pow", [](const Tensor& a, const Tensor& b) { return pow(a, b); }, Pair::Meet, 9},
    {"maximum", [](const Tensor& a, const Tensor& b) { return maximum(a, b); }, Pair::Meet, 3},
    {"minimum", [](const Tensor& a, const Tensor& b) { return minimum(a, b); }, Pair::Meet, 2},
    {"mod", [](const Tensor& a, const Tensor& b) { return mod(a, b); }, Pair::Meet, 1},
    {"remainder", [](const Tensor& a, const Tensor& b) { return remainder(a, b); }, Pair::Meet, 1},
    {"squared_difference",
     [](const Tensor& a, const Tensor& b) { return squared_difference(a, b); }, Pair::Meet, 1},
    {"atan2", [](const Tensor& a, const Tensor& b) { return atan2(a, b); }, Pair::Quotient,
     0.98279},
    {"less", [](const Tensor& a, const Tensor& b) { return less(a, b); }, Pair::Truth, 0},
    {"greater", [](const Tensor& a, const Tensor& b) { return greater(a, b); }, Pair::Truth, 1},
    {"equal", [](const Tensor& a, const Tensor& b) { return equal(a, b); }, Pair::Truth, 0},
    {"where", [](const Tensor& a, const Tensor& b) { return where(cast(a, Bool), a, b); },
     Pair::Meet, 3},
    {"concat",
     [](const Tensor& a, const Tensor& b) {
       return concat({a, b}, 0);
     },
     Pair::Meet, 3},
};

TEST_F(NumberTypes, TwoTensorsMeetInPyTorchsType) {
  for (const Pair& op : kPairs)
    for (const DType a : kAllDTypes)
      for (const DType b : kAllDTypes) {
        const DType meet = kMeet[static_cast<int>(a)][static_cast<int>(b)];
        const DType want = op.result == Pair::Truth                         ? Bool
                           : op.result == Pair::Quotient && !is_float(meet) ? F32
                                                                            : meet;
        SCOPED_TRACE(std::string(op.name) + " " + std::string(name_of(a)) + " " +
                     std::string(name_of(b)));
        const Tensor y = op.f(of_type(a, 3), of_type(b, 2));
        EXPECT_EQ(name_of(y.dtype()), name_of(want));
        if (a != Bool && b != Bool) {
          // Exact in every type, but for the angle: within a rounding of bf16.
          EXPECT_NEAR(y.to_vector()[0], op.value, 0x1p-8);
        }
      }
}

// In PyTorch the tensor with axes would win.
TEST_F(NumberTypes, ATensorWithoutAxesCountsLikeAnyOther) {
  const Tensor halves = of_type(F16, 3), one = from_floats({2}, {});
  EXPECT_EQ(name_of((halves * one).dtype()), name_of(F32));
  EXPECT_EQ(name_of((one * halves).dtype()), name_of(F32));
  EXPECT_EQ(name_of((of_type(U8, 3) * cast(one, I64)).dtype()), name_of(I64));
}

TEST_F(NumberTypes, PlacesAreI32) {
  const Tensor x = of_type(F32, 3);
  for (const Tensor& places : {argmax(x), argmin(x), sort(x)[1], argsort(x), top_k(x, 1)[1]})
    EXPECT_EQ(name_of(places.dtype()), name_of(I32));
}

TEST_F(NumberTypes, CompiledIsTheSame) {
  for (const Pair& op : kPairs)
    for (const auto& [a, b] :
         {std::pair(I32, I32), std::pair(I32, F32), std::pair(I64, I32), std::pair(U8, I8),
          std::pair(I64, BF), std::pair(F16, BF), std::pair(Bool, I32)}) {
      SCOPED_TRACE(std::string(op.name) + " " + std::string(name_of(a)) + " " +
                   std::string(name_of(b)));
      auto program = compile([&](const Tensor& x, const Tensor& y) { return op.f(x, y); });
      const Tensor x = of_type(a, 3), y = of_type(b, 2);
      const Tensor want = op.f(x, y), got = program(x, y);
      EXPECT_EQ(name_of(got.dtype()), name_of(want.dtype()));
      EXPECT_EQ(got.to_vector(), want.to_vector());
    }
}

TEST_F(NumberTypes, NumbersKeepATensorsTypeWhereTheirKindAllows) {
  for (const DType t : kAllDTypes) {
    SCOPED_TRACE(name_of(t));
    const Tensor x = of_type(t, 3);
    EXPECT_EQ((x * 2).dtype(), t == Bool ? I64 : t);
    EXPECT_EQ((2 - x).dtype(), t == Bool ? I64 : t);
    EXPECT_EQ((x * 0.5).dtype(), is_float(t) ? t : F32);
    EXPECT_EQ((0.5 + x).dtype(), is_float(t) ? t : F32);
    EXPECT_EQ((x / 2).dtype(), is_float(t) ? t : F32);
  }
  EXPECT_EQ((from_ints({3}, {1}) * 0.5).to_vector(), std::vector<double>{1.5});
  EXPECT_EQ((from_ints({3}, {1}) / 2).to_vector(), std::vector<double>{1.5});
  EXPECT_EQ((1 / from_ints({4}, {1})).to_vector(), std::vector<double>{0.25});
  auto program = compile([](const Tensor& x) { return x * 0.5; });
  EXPECT_EQ(program(from_ints({3, 5}, {2})).to_vector(), (std::vector<double>{1.5, 2.5}));
}

TEST_F(NumberTypes, SumsOfIntegersAreMadeIn64Bits) {
  for (const DType t : {I64, I32, U8, I8, Bool}) {
    SCOPED_TRACE(name_of(t));
    EXPECT_EQ(sum(of_type(t, 3)).dtype(), I64);
    EXPECT_EQ(prod(of_type(t, 3)).dtype(), I64);
    EXPECT_EQ(cumsum(of_type(t, 3), 0).dtype(), I64);
    if (t != Bool) {
      EXPECT_EQ(max(of_type(t, 3)).dtype(), t);
    }
    EXPECT_THROW(mean(of_type(t, 3)), UserError);
  }
  EXPECT_EQ(sum(from_ints({INT32_MAX, INT32_MAX}, {2})).to_ints(),
            Longs{2 * std::int64_t{INT32_MAX}});
  try {
    mean(from_ints({1, 2}, {2}));
    FAIL() << "a mean of integers";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), "E0203");
    EXPECT_NE(std::string(e.what()).find("cast"), std::string::npos);
  }
}

TEST_F(NumberTypes, SixtyFourBitsAreExact) {
  const Tensor x = from_int64s({kOdd - 1, kOdd, kOdd + 1, -kOdd}, {4});
  EXPECT_EQ(x.to_ints(), (Longs{kOdd - 1, kOdd, kOdd + 1, -kOdd}));
  const Tensor y = from_int64s({kOdd}, {1});
  EXPECT_EQ(equal(x, y).to_ints(), (Longs{0, 1, 0, 0}));
  EXPECT_EQ(less(x, y).to_ints(), (Longs{1, 0, 0, 1}));
  EXPECT_EQ((x - y).to_ints(), (Longs{-1, 0, 1, -2 * kOdd}));
  EXPECT_EQ(maximum(x, y).to_ints(), (Longs{kOdd, kOdd, kOdd + 1, kOdd}));
  EXPECT_EQ((x + kOdd).to_ints(), (Longs{2 * kOdd - 1, 2 * kOdd, 2 * kOdd + 1, 0}));
  EXPECT_EQ(max(slice(x, 0, 0, 2)).to_ints(), Longs{kOdd});
  EXPECT_EQ(min(x).to_ints(), Longs{-kOdd});
  EXPECT_EQ(argmax(slice(x, 0, 0, 2), 0).to_ints(), Longs{1});
  EXPECT_EQ(sum(x).to_ints(), Longs{2 * kOdd});
  EXPECT_EQ(cumsum(x, 0).to_ints(), (Longs{kOdd - 1, 2 * kOdd - 1, 3 * kOdd, 2 * kOdd}));
  EXPECT_EQ(sort(x, 0)[0].to_ints(), (Longs{-kOdd, kOdd - 1, kOdd, kOdd + 1}));
  EXPECT_EQ(where(less(x, y), x, y).to_ints(), (Longs{kOdd - 1, kOdd, kOdd, -kOdd}));
  EXPECT_EQ(clamp(x, 0, 0x1p53).to_ints(), (Longs{kOdd - 1, kOdd - 1, kOdd - 1, 0}));
  EXPECT_EQ(iota(3, I64, kOdd, 1).to_ints(), (Longs{kOdd, kOdd + 1, kOdd + 2}));
  EXPECT_EQ(
      pow(from_int64s({3, -3, 2, 1, 0}, {5}), from_int64s({39, 39, 63, -5, 0}, {5})).to_ints(),
      (Longs{4052555153018976267, -4052555153018976267, kLeast, 1, 1}));
}

TEST_F(NumberTypes, IntegersBecomeFloatsInOneRounding) {
  constexpr std::int64_t k60 = std::int64_t{1} << 60, k52 = std::int64_t{1} << 52;
  // Ties of the float type, and what lies one beside them, beyond what a double tells apart.
  const Longs near_ties = {k60 + (k60 >> 24),
                           k60 + (k60 >> 24) + 1,
                           k60 + 3 * (k60 >> 24) - 1,
                           -(k60 + (k60 >> 24) + 1),
                           9007199791611905,
                           kLeast,
                           7};
  const Tensor x = from_int64s(near_ties, {7});
  const std::vector<double> f32 = {
      0x1p60, 0x1p60 + 0x1p37, 0x1p60 + 0x1p37, -0x1p60 - 0x1p37, 9007200328482816, -0x1p63, 7};
  EXPECT_EQ(cast(x, DType::F32).to_vector(), f32);
  EXPECT_EQ(compile([](Tensor t) { return cast(t, DType::F32); })(x).to_vector(), f32);
  const Tensor y = from_int64s({k60 + k52, k60 + k52 + 1, -k60 - k52 - 1}, {3});
  EXPECT_EQ(cast(y, DType::BF16).to_vector(),
            (std::vector<double>{0x1p60, 0x1p60 + 0x1p53, -0x1p60 - 0x1p53}));
}

TEST_F(NumberTypes, IntegersWrapAround) {
  const Tensor x = from_int64s({kMost, kLeast}, {2});
  EXPECT_EQ((x + 1).to_ints(), (Longs{kLeast, kLeast + 1}));
  EXPECT_EQ((x - 1).to_ints(), (Longs{kMost - 1, kMost}));
  EXPECT_EQ((x * 2).to_ints(), (Longs{-2, 0}));
  EXPECT_EQ(mod(x, from_int64s({0, -1}, {2})).to_ints(), (Longs{0, 0}));
  EXPECT_EQ(remainder(from_ints({-7, 7}, {2}), from_ints({3, -3}, {2})).to_ints(), (Longs{2, -2}));
  EXPECT_EQ((from_ints({INT32_MAX}, {1}) + 1).to_ints(), Longs{INT32_MIN});
  EXPECT_EQ((of_type(U8, 200) + of_type(U8, 100)).to_ints(), (Longs{44, 44}));
  EXPECT_EQ((of_type(I8, 100) * of_type(I8, 2)).to_ints(), (Longs{-56, -56}));
  EXPECT_EQ(cast(from_int64s({kOdd, 300, -1}, {3}), U8).to_ints(), (Longs{1, 44, 255}));
  EXPECT_EQ(cast(from_int64s({kMost}, {1}), I32).to_ints(), Longs{-1});
  // From floats, what is out of range becomes the nearest bound.
  EXPECT_EQ(cast(from_floats({1e20f, -1e20f, 2.7f, -2.7f}, {4}), I64).to_ints(),
            (Longs{kMost, kLeast, 2, -2}));
}

// As PyTorch: the number becomes one of the tensor's type, and wraps around on its way; quotients
// are of floats, so there it is what it is.
TEST_F(NumberTypes, NumbersOutsideATensorsTypeWrapAround) {
  const Tensor u = cast(from_ints({1, 200}, {2}), U8), i = cast(from_ints({1, 100}, {2}), I8);
  const Tensor n = from_ints({1, 100}, {2});
  EXPECT_EQ((u + -3).to_ints(), (Longs{254, 197}));
  EXPECT_EQ((u + 300).to_ints(), (Longs{45, 244}));
  EXPECT_EQ((-3 - u).to_ints(), (Longs{252, 53}));
  EXPECT_EQ((i + 200).to_ints(), (Longs{-55, 44}));
  EXPECT_EQ((n + ((std::int64_t{1} << 33) + 5)).to_ints(), (Longs{6, 105}));
  EXPECT_EQ((n * (kMost - 1)).to_ints(), (Longs{-2, -200}));
  const auto divided = [](const Tensor& x, std::int64_t by) { return (x / by).to_vector(); };
  EXPECT_EQ(divided(u, -3), (std::vector<double>{-1.0f / 3, -200.0f / 3}));
  EXPECT_EQ(divided(i, 1000), (std::vector<double>{0.001f, 0.1f}));
  EXPECT_EQ(divided(n, 10000000000), (std::vector<double>{1e-10f, 1e-8f}));
  EXPECT_EQ((300 / cast(from_ints({3}, {1}), U8)).to_vector(), std::vector<double>{100});
  EXPECT_EQ(minimum(u, 300).to_ints(), (Longs{1, 200}));
  EXPECT_EQ(maximum(u, -3).to_ints(), (Longs{1, 200}));
  auto program = compile([](const Tensor& x) { return (x + 300) * -3; });
  EXPECT_EQ(program(u).to_ints(), ((u + 300) * -3).to_ints());
}

// Nor do they in comparisons and as exponents, where the result would be that of another number.
TEST_F(NumberTypes, NumbersOutsideATensorsTypeAreComparedAsTheyAre) {
  const Tensor u = cast(from_ints({1, 200}, {2}), U8), i = cast(from_ints({0, -100}, {2}), I8);
  const Tensor n = from_ints({1, -1}, {2});
  const auto answers = [](const Tensor& x, std::int64_t b) {
    return std::vector<Longs>{equal(x, b).to_ints(),   not_equal(x, b).to_ints(),
                              less(x, b).to_ints(),    less_equal(x, b).to_ints(),
                              greater(x, b).to_ints(), greater_equal(x, b).to_ints()};
  };
  const Longs yes = {1, 1}, no = {0, 0};
  const std::vector<Longs> below = {no, yes, yes, yes, no, no}, above = {no, yes, no, no, yes, yes};
  EXPECT_EQ(answers(u, 256), below);
  EXPECT_EQ(answers(u, 300), below);  // not as 255, which 255 would equal
  EXPECT_EQ(answers(u, -1), above);
  EXPECT_EQ(answers(i, 200), below);
  EXPECT_EQ(answers(i, -129), above);
  EXPECT_EQ(answers(n, std::int64_t{1} << 32), below);
  EXPECT_EQ(not_equal(cast(from_ints({156, 3}, {2}), U8), -100).to_ints(), yes);
  EXPECT_EQ(greater(u, 1).to_ints(), (Longs{0, 1}));
  EXPECT_EQ(less(cast(from_ints({0, 1}, {2}), Bool), 2).to_ints(), yes);
  auto program = compile([](const Tensor& x) { return less(x, 256); });
  EXPECT_EQ(program(u).to_ints(), yes);
}

TEST_F(NumberTypes, ExponentsOutsideATensorsTypeAreWhatTheyAre) {
  const auto power = [](DType t, int base, std::int64_t exponent) {
    const Tensor y = pow(cast(from_ints({base}, {1}), t), exponent);
    EXPECT_EQ(name_of(y.dtype()), name_of(t));
    return y.to_ints();
  };
  EXPECT_EQ(power(U8, 2, 256), Longs{0});
  EXPECT_EQ(power(I8, 3, 128), Longs{1});
  EXPECT_EQ(power(I8, 3, 3), Longs{27});
  EXPECT_EQ(power(I32, 2, std::int64_t{1} << 32), Longs{0});
  EXPECT_EQ(power(U8, 2, -1), Longs{0});
  EXPECT_EQ(power(U8, 1, -1), Longs{1});
  auto program = compile([](const Tensor& x) { return pow(x, 256); });
  EXPECT_EQ(program(cast(from_ints({2}, {1}), U8)).to_ints(), Longs{0});
}

TEST_F(NumberTypes, IntegersHaveSignsAndSquares) {
  for (const DType t : {I64, I32, I8}) {
    SCOPED_TRACE(name_of(t));
    const Tensor x = cast(from_ints({-7, 0, 5}, {3}), t);
    EXPECT_EQ((-x).dtype(), t);
    EXPECT_EQ((-x).to_ints(), (Longs{7, 0, -5}));
    EXPECT_EQ(abs(x).to_ints(), (Longs{7, 0, 5}));
    EXPECT_EQ(sign(x).to_ints(), (Longs{-1, 0, 1}));
    EXPECT_EQ(square(x).to_ints(), (Longs{49, 0, 25}));
  }
  const Tensor least = from_int64s({kLeast, kOdd}, {2});
  EXPECT_EQ((-least).to_ints(), (Longs{kLeast, -kOdd}));
  EXPECT_EQ(abs(least).to_ints(), (Longs{kLeast, kOdd}));
  EXPECT_EQ(square(from_int64s({std::int64_t{1} << 32}, {1})).to_ints(), Longs{0});
  EXPECT_EQ((-cast(from_ints({1}, {1}), U8)).to_ints(), Longs{255});
  EXPECT_EQ(abs(cast(from_ints({-128}, {1}), I8)).to_ints(), Longs{-128});
  EXPECT_THROW(neg(cast(from_ints({1}, {1}), Bool)), UserError);
  auto program = compile([](const Tensor& x) { return square(-x) + abs(x); });
  EXPECT_EQ(program(least).to_ints(), (square(-least) + abs(least)).to_ints());
}

TEST_F(NumberTypes, CompiledIntegersAreExactToo) {
  auto program = compile([](const Tensor& x) { return (x + 1) * x - kOdd; });
  const Tensor x = from_int64s({kOdd, kMost, -3}, {3});
  EXPECT_EQ(program(x).to_ints(), ((x + 1) * x - kOdd).to_ints());
  auto narrow = compile([](const Tensor& x) { return (x + x) * x + 3; });
  const Tensor y = from_ints({INT32_MAX, 7, INT32_MIN}, {3});
  EXPECT_EQ(narrow(y).to_ints(), (Longs{5, 101, 3}));
}

TEST_F(NumberTypes, BoundsOfIntegersAreIntegers) {
  EXPECT_THROW(clamp(from_ints({1}, {1}), 0.5, 2), UserError);
  EXPECT_EQ(clamp(from_ints({-5, 5}, {2}), -2, 3).to_ints(), (Longs{-2, 3}));
  EXPECT_EQ(clamp(cast(from_ints({5}, {1}), I8), 200, 300).to_ints(), Longs{127});
  EXPECT_EQ(clamp(cast(from_ints({3}, {1}), U8), -10, -1).to_ints(), Longs{0});
}

// Not as the negative number of the same bits.
TEST_F(NumberTypes, NumbersAboveTheLargestIntegerAreRefused) {
  constexpr std::uint64_t kAbove = std::uint64_t{1} << 63;
  const auto refused = [](const auto& call) {
    try {
      call();
    } catch (const UserError& e) {
      return e.code();
    }
    return std::string("computed");
  };
  const Tensor n = from_int64s({5}, {1}), x = from_floats({1, 2}, {2});
  EXPECT_EQ(refused([&] { less(n, std::numeric_limits<std::uint64_t>::max()); }), "E0314");
  EXPECT_EQ(refused([&] { minimum(n, kAbove); }), "E0314");
  EXPECT_EQ(refused([&] { return n + kAbove; }), "E0314");
  EXPECT_EQ(refused([&] { return x * kAbove; }), "E0314");
  EXPECT_EQ(refused([&] { return kAbove - x; }), "E0314");
  EXPECT_EQ(refused([&] { pow(n, kAbove); }), "E0314");
  EXPECT_EQ(equal(n + (kAbove - 1), from_int64s({kLeast + 4}, {1})).to_ints(), Longs{1});
  EXPECT_EQ((x / kAbove).to_vector(), (std::vector<double>{0x1p-63, 0x1p-62}));
  EXPECT_EQ((x * std::size_t{3}).to_vector(), (std::vector<double>{3, 6}));
}

}  // namespace
}  // namespace aloft
