// What a tensor looks like to people.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "aloft/format.h"
#include "backends/cpu/cpu_backend.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/compare.h"

namespace aloft {
namespace {

class TensorText : public testing::Test {
 protected:
  void SetUp() override { use_device(cpu_device()); }
};

TEST_F(TensorText, HasTypeShapeAndColumns) {
  EXPECT_EQ(to_text(from_floats({1, -2.5f, 300, 0.125f}, {2, 2})),
            "f32[2,2]\n[[  1.0000,  -2.5000],\n [300.0000,   0.1250]]");
  EXPECT_EQ(to_text(from_floats({1, -20, 3}, {3})), "f32[3]\n[  1., -20.,   3.]");
  EXPECT_EQ(to_text(from_ints({7, -1}, {1, 2})), "i32[1,2]\n[[ 7, -1]]");
  EXPECT_EQ(to_text(from_floats({2.5f}, {})), "f32[]\n2.5000");
  EXPECT_EQ(to_text(from_floats({}, {0, 4})), "f32[0,4]\n[]");
  EXPECT_EQ(to_text(greater(from_floats({1, 3}, {2}), 2.0)), "bool[2]\n[false,  true]");
  EXPECT_EQ(to_text(cast(from_floats({0.5f, 1e-9f}, {2}), DType::BF16)),
            "bf16[2]\n[5.0000e-01, 9.9681e-10]");
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_text(from_floats({-kInf, 1, kInf - kInf}, {3})).find("-inf"), 8u);
  EXPECT_EQ(to_text(Tensor()), "undefined");
}

TEST_F(TensorText, MatricesStandApartAndLongOnesAreCut) {
  EXPECT_EQ(to_text(from_ints({1, 2, 3, 4}, {2, 1, 2})), "i32[2,1,2]\n[[[1, 2]],\n\n [[3, 4]]]");
  const std::vector<std::int32_t> many(2000, 5);
  EXPECT_EQ(to_text(from_ints(many, {2000})), "i32[2000]\n[5, 5, 5, ..., 5, 5, 5]");
  EXPECT_EQ(to_text(from_ints(many, {2, 1000})),
            "i32[2,1000]\n[[5, 5, 5, ..., 5, 5, 5],\n [5, 5, 5, ..., 5, 5, 5]]");
}

// No double holds these.
TEST_F(TensorText, WholeNumbersArePrintedAsTheyAre) {
  using Limits = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(to_text(from_int64s({Limits::max(), Limits::min()}, {2})),
            "i64[2]\n[ 9223372036854775807, -9223372036854775808]");
  EXPECT_EQ(to_text(from_int64s({(std::int64_t{1} << 53) + 1}, {})), "i64[]\n9007199254740993");
}

TEST_F(TensorText, IsPrintedByFmtAndStreams) {
  const Tensor t = from_ints({7}, {1});
  EXPECT_EQ(fmt::format("{}", t), "i32[1]\n[7]");
  std::ostringstream out;
  out << t;
  EXPECT_EQ(out.str(), to_text(t));
}

TEST_F(TensorText, OfATracedValueIsItsType) {
  std::string seen;
  auto f = compile([&](const Tensor& x) {
    const Tensor y = x + x;
    seen = to_text(y);
    return y;
  });
  f(from_floats({1, 2}, {2}));
  EXPECT_EQ(seen, "f32[B<=2], traced");
}

}  // namespace
}  // namespace aloft
