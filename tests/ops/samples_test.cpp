// Samples are what every check of an op runs on: they hold a length that no vector divides and no
// block holds. Special values ops_kernels puts into all of them.
#include <gtest/gtest.h>

#include <map>

#include "ops/op.h"
#include "ops/pool2d.h"
#include "ops/sample_inputs.h"

namespace aloft {
namespace {

constexpr std::int64_t kLong = 4097;

// Ops whose samples have no such length, and why.
const std::map<std::string, std::string> kShort = {
    {"attention_cached", "a cache of 300 is cut as one of 4,097 is"},
    {"attention_qkv", "attention's, which has it"},
    {"attention_qkv_grad", "attention_grad's, which has it"},
    {"scaler_update", "works on single numbers"},
    {"learning_rate", "works on single numbers"},
    {"count_applied", "works on single numbers"},
    {"grad_verdict", "works on single numbers"},
    {"element_count", "gives a single number"},
};

bool is_long(const Shape& shape) {
  for (const Dim& d : shape)
    if (d.max() >= kLong) return true;
  return false;
}

bool has_long_sample(const OpDef& op) {
  for (const Sample& sample : testing::samples_of(op)) {
    std::vector<TensorType> in;
    for (const SampleInput& i : sample.in) in.push_back({i.dtype, i.shape});
    for (const TensorType& t : in)
      if (is_long(t.shape)) return true;
    for (const TensorType& t : infer_types(op, sample.attrs, in, {}))
      if (is_long(t.shape)) return true;
  }
  return false;
}

TEST(Samples, HoldALengthThatNothingDivides) {
  for (const OpDef& op : op_table()) {
    const bool is_excused = kShort.contains(op.name.str());
    EXPECT_NE(has_long_sample(op), is_excused)
        << op.name.str() << (is_excused ? " has one: take it off the list" : " has no 4,097");
  }
}

// What a call costs is counted as it is, also where the count is no integer of 63 bits.
TEST(Costs, OfHugeWindowsAreHuge) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  const AvgPool2dAttrs pool{{kHuge, kHuge}, {}, {kHuge / 2, kHuge / 2}};
  const TensorType x{DType::F32, {1, 1, 4, 4}}, y{DType::F32, {1, 1, 1, 1}};
  EXPECT_EQ(op_named("avg_pool2d").cost(to_attrs(pool), {&x, 1}, {&y, 1}).flops, 0x1p80);
}

}  // namespace
}  // namespace aloft
