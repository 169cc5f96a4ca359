// Samples are what every check of an op runs on: they hold nothing, one, what fills no vector, what
// no vector divides and no block holds; and special values, of their own or put in by ops_kernels.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ops/op.h"
#include "ops/pool2d.h"
#include "ops/sample_inputs.h"

namespace aloft {
namespace {

struct Short {
  std::set<std::int64_t> lacks;
  const char* why;
};

const std::int64_t kLengths[] = {0, 1, 17, 4097};

// Ops whose samples lack some of these lengths, and why.
const std::map<std::string, Short> kShort = {
    {"count_applied", {{0, 1, 17, 4097}, "works on single numbers"}},
    {"learning_rate", {{0, 1, 17, 4097}, "works on single numbers"}},
    {"scaler_update", {{0, 1, 17, 4097}, "works on single numbers"}},
};

std::set<std::int64_t> lengths_of(const OpDef& op) {
  std::set<std::int64_t> lengths;
  const auto add = [&](const Shape& s) {
    for (const Dim& d : s) lengths.insert(d.max());
  };
  for (const Sample& sample : testing::samples_of(op)) {
    std::vector<TensorType> in;
    for (const SampleInput& i : sample.in) in.push_back({i.dtype, i.shape});
    for (const TensorType& t : in) add(t.shape);
    for (const TensorType& t : infer_types(op, sample.attrs, in, {})) add(t.shape);
  }
  return lengths;
}

TEST(Samples, HoldLengthsThatKernelsStumbleOver) {
  for (const OpDef& op : op_table()) {
    const std::set<std::int64_t> has = lengths_of(op);
    std::set<std::int64_t> lacks;
    for (const std::int64_t n : kLengths)
      if (!has.contains(n)) lacks.insert(n);
    const auto excused = kShort.find(op.name.str());
    if (excused == kShort.end())
      EXPECT_TRUE(lacks.empty()) << op.name.str() << " lacks " << *lacks.begin();
    else
      EXPECT_EQ(lacks, excused->second.lacks) << op.name.str() << ": " << excused->second.why;
  }
}

// Of their own, or those that ops_kernels fills with them.
TEST(Samples, HoldSpecialValues) {
  for (const OpDef& op : op_table()) {
    bool takes_floats = false, has = !testing::special_samples_of(op).empty();
    for (const Sample& sample : testing::samples_of(op))
      for (const SampleInput& in : sample.in) {
        takes_floats |= is_float(in.dtype);
        has |= in.fill == Fill::Special || in.fill == Fill::InRange;
      }
    EXPECT_EQ(has, takes_floats) << op.name.str();
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
