// Samples are what every check of an op runs on: they hold nothing, one, what fills no vector, what
// no vector divides and no block holds; and special values, of their own or put in by ops_kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "ops/op.h"
#include "ops/pool2d.h"
#include "ops/sample_inputs.h"
#include "ops/update.h"
#include "optim/kind.h"

namespace aloft {
namespace {

struct Short {
  std::set<std::int64_t> lacks;
  const char* why;
};

constexpr std::int64_t kLong = 4097;
const std::int64_t kLengths[] = {0, 1, 17, kLong};

// Ops whose samples lack some of these lengths, and why.
const std::map<std::string, Short> kShort = [] {
  const Short single{{0, 1, 17, 4097}, "works on single numbers"};
  std::map<std::string, Short> all = {{"average_weight", single},
                                      {"count_applied", single},
                                      {"learning_rate", single},
                                      {"scaler_update", single}};
  for (const optim::FormulaRecord* formula : optim::formulas())
    if (formula->is_of_tensors) all.emplace(numbers_op_name(*formula), single);
  return all;
}();

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

using Types = std::vector<TensorType>;

// Calls `f` with the types of every sample's operands and results.
void for_each_call(const OpDef& op, const auto& f) {
  for (const Sample& sample : testing::samples_of(op)) {
    Types in;
    for (const SampleInput& i : sample.in) in.push_back({i.dtype, i.shape});
    f(sample, in, infer_types(op, sample.attrs, in, {}));
  }
}

// Where no sample may be so long.
const std::map<std::string, const char*> kLongTakesTooLong = {
    {"attention_qkv", "as many keys as queries: 17 million pairs"},
    {"attention_qkv_grad", "as many keys as queries: 17 million pairs"},
};

// A product's rows, columns and inner axis are cut into blocks of their own.
TEST(Samples, OfProductsAreLongInEachAxis) {
  int ops = 0;
  for (const OpDef& op : op_table()) {
    if (!op.products) continue;
    ++ops;
    std::vector<std::map<std::string, bool>> is_long;  // of each product of the op
    for_each_call(op, [&](const Sample& sample, const Types& in, const Types& out) {
      const std::vector<Product> products = op.products(sample.attrs, in, out);
      is_long.resize(std::max(is_long.size(), products.size()));
      for (std::size_t i = 0; i < products.size(); ++i) {
        is_long[i]["m"] |= products[i].m == kLong;
        is_long[i]["n"] |= products[i].n == kLong;
        is_long[i]["k"] |= products[i].k == kLong;
      }
    });
    std::string lacks;
    for (std::size_t i = 0; i < is_long.size(); ++i)
      for (const auto& [axis, has] : is_long[i])
        if (!has) lacks += " " + axis + " of product " + std::to_string(i);
    EXPECT_EQ(lacks.empty(), !kLongTakesTooLong.contains(op.name.str()))
        << op.name.str() << " is not " << kLong << " long in" << lacks;
  }
  EXPECT_GE(ops, 10);
}

// What a loop over neighbours in memory runs along.
TEST(Samples, AreLongInTheLastAxis) {
  for (const OpDef& op : op_table()) {
    if (op.products || kShort.contains(op.name.str())) continue;
    bool in_is_long = false, out_is_long = false;
    const auto ends_long = [](const Types& types) {
      return std::any_of(types.begin(), types.end(), [](const TensorType& t) {
        return t.shape.rank() > 0 && t.shape[-1].max() == kLong;
      });
    };
    for_each_call(op, [&](const Sample&, const Types& in, const Types& out) {
      in_is_long |= ends_long(in);
      out_is_long |= ends_long(out);
    });
    // Who sums along a row reads a long one, who maps elements writes one, others do either.
    const bool maps = op.fusion == Fusion::Elementwise || op.fusion == Fusion::Broadcast;
    const bool sums = op.fusion == Fusion::RowReduce;
    EXPECT_TRUE((in_is_long && !maps) || (out_is_long && !sums))
        << op.name.str() << ": no " << (maps ? "result" : "operand") << " ends with " << kLong;
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
