// apex's functions that run in a type, and ops that do by their name: where O1 governs, whatever
// form their arguments have.
#include "frontend/cast_functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "e2e/refusal.h"
#include "e2e/training.h"
#include "frontend/amp.h"
#include "frontend/autocast.h"
#include "frontend/module.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/matmul.h"
#include "ops/op.h"
#include "ops/reduce.h"
#include "ops/samples.h"
#include "ops/softmax.h"

namespace aloft::e2e {
namespace {

using amp::Options;

void begin() {
  use_cpu();
  eager().clear_tape();
}

Options quiet(Options o) {
  o.verbosity = 0;
  return o;
}

struct Probe : nn::Module {
  std::function<void(const Tensor& half, const Tensor& full)> look;
  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) {
      look(matmul(t, t), t);
      return t;
    });
  }
};

TEST(CastFunctions, RunInTheTypeTheySay) {
  begin();
  const auto type = [](const Tensor& a, const Tensor& b) {
    return std::pair{a.dtype(), b.dtype()};
  };
  using Types = std::pair<DType, DType>;
  Probe probe;
  int looks = 0;
  probe.look = [&](const Tensor& half, const Tensor& full) {
    ++looks;
    ASSERT_EQ(half.dtype(), DType::F16);
    EXPECT_EQ(amp::half_function(type)(half, full), Types(DType::F16, DType::F16));
    EXPECT_EQ(amp::float_function(type)(half, full), Types(DType::F32, DType::F32));
    EXPECT_EQ(amp::promote_function(type)(half, full), Types(DType::F32, DType::F32));
    EXPECT_EQ(amp::promote_function(type)(half, half), Types(DType::F16, DType::F16));
    const auto product = [](const Tensor& a) { return matmul(a, a); };
    EXPECT_EQ(amp::float_function(product)(full).dtype(), DType::F32);
    EXPECT_EQ(amp::half_function(product)(full).dtype(), DType::F16);
    const auto named = [](const Tensor& t, const char* word) {
      return std::pair{t.dtype(), *word};
    };
    EXPECT_EQ(amp::half_function(named)(full, "word"), (std::pair{DType::F16, 'w'}));
    const amp::disable_casts off;
    EXPECT_EQ(matmul(full, full).dtype(), DType::F32);
  };
  amp::initialize(probe, quiet({.opt_level = "O1"}))(full({2, 2}, 1));
  EXPECT_EQ(looks, 1);
  // Where no O1 governs they are as they are.
  const Tensor half = cast(full({2, 2}, 1), DType::F16);
  EXPECT_EQ(amp::float_function(type)(half, half), Types(DType::F16, DType::F16));
  EXPECT_EQ(amp::half_function(type)(full({2}, 1), half), Types(DType::F32, DType::F16));
}

// What a function is given in any form: lists, pairs, optionals; what is undefined stays so, and
// what is no floating tensor is passed on.
TEST(CastFunctions, ReachTensorsWithinOtherArguments) {
  begin();
  using Types = std::vector<DType>;
  const auto types = [](const std::vector<Tensor>& list, const std::pair<Tensor, int>& pair,
                        const std::optional<Tensor>& maybe, const Tensor& none) {
    Types all;
    for (const Tensor& t : list) all.push_back(t.dtype());
    all.push_back(pair.first.dtype());
    if (maybe) all.push_back(maybe->dtype());
    EXPECT_FALSE(none.is_defined());
    EXPECT_EQ(pair.second, 7);
    return all;
  };
  Probe probe;
  int looks = 0;
  probe.look = [&](const Tensor& half, const Tensor& full) {
    ++looks;
    const std::vector<Tensor> list = {half, full, cast(full, DType::I32)};
    const auto of = [&](const auto& f, const std::optional<Tensor>& maybe) {
      return f(list, std::pair{full, 7}, maybe, Tensor());
    };
    using enum DType;
    EXPECT_EQ(of(amp::half_function(types), half), (Types{F16, F16, I32, F16, F16}));
    EXPECT_EQ(of(amp::half_function(types), {}), (Types{F16, F16, I32, F16}));
    EXPECT_EQ(of(amp::float_function(types), half), (Types{F32, F32, I32, F32, F32}));
    EXPECT_EQ(of(amp::promote_function(types), half), (Types{F32, F32, I32, F32, F32}));
    EXPECT_EQ(of(amp::custom_fwd(types, F16), half), (Types{F16, F16, I32, F16, F16}));
    const auto pair_type = [](const std::pair<Tensor, Tensor>& p) { return p.second.dtype(); };
    EXPECT_EQ(amp::promote_function(pair_type)(std::pair{full, half}), F32);
    EXPECT_EQ(amp::promote_function(pair_type)(std::pair{half, half}), F16);
  };
  amp::initialize(probe, quiet({.opt_level = "O1"}))(full({2, 2}, 1));
  EXPECT_EQ(looks, 1);
}

TEST(CastFunctions, OpsAreRegisteredByName) {
  begin();
  Options options = quiet({.opt_level = "O1"});
  amp::register_float_function(options, "matmul");
  amp::register_half_function(options, "softmax");
  amp::register_promote_function(options, "add");
  Probe probe;
  probe.look = [](const Tensor& product, const Tensor& x) {
    EXPECT_EQ(product.dtype(), DType::F32);
    EXPECT_EQ(softmax(x).dtype(), DType::F16);
  };
  amp::initialize(probe, options)(full({2, 2}, 1));
  EXPECT_EQ(code_of([&] { amp::register_half_function(options, "matmol"); }), "E0809");
}

bool promotes_by_name(const OpDef& op) {
  Options options = quiet({.opt_level = "O1"});
  return code_of([&] { amp::register_promote_function(options, op.name.str()); }).empty();
}

// Operands of a sample, filled with ones and zeros: float ones are of these types in turn. Nothing
// where there are fewer than two of them, or their types are given.
std::vector<Operand> mixed_operands(const OpDef& op, const Sample& sample,
                                    const std::vector<DType>& types) {
  std::vector<Operand> all;
  std::size_t floats = 0;
  for (std::size_t i = 0; i < sample.in.size(); ++i) {
    const SampleInput& in = sample.in[i];
    const bool kept = std::ranges::count(op.keep_inputs, static_cast<int>(i)) > 0;
    if (!is_float(in.dtype)) {
      all.emplace_back(full(in.shape, 0, in.dtype));
    } else {
      if (in.fixed_dtype || kept) return {};
      all.emplace_back(full(in.shape, 1, types[floats++ % types.size()]));
    }
  }
  return floats > 1 ? all : std::vector<Operand>{};
}

// What register_promote_function takes as done is done: of every op of the class Follow with
// several floating operands the result is of the widest type among them.
TEST(CastFunctions, WhatPromotesByNameDoesSo) {
  begin();
  const amp::autocast scope({.dtype = DType::F16});
  std::set<std::string> seen;
  for (const OpDef& op : op_table()) {
    if (op.numeric != Numeric::Follow) continue;
    EXPECT_TRUE(promotes_by_name(op)) << op.name.str();
    Samples samples;
    op.samples(samples);
    int of_op = 0;
    for (const Sample& sample : samples.all()) {
      if (mixed_operands(op, sample, {DType::F32}).empty() || ++of_op > 2) continue;
      for (const auto& [types, widest] : std::vector<std::pair<std::vector<DType>, DType>>{
               {{DType::F16, DType::F32}, DType::F32},
               {{DType::F32, DType::F16, DType::F16}, DType::F32},
               {{DType::F16, DType::BF16}, DType::F32},
               {{DType::F16}, DType::F16}}) {
        const std::vector<Operand> operands = mixed_operands(op, sample, types);
        seen.insert(op.name.str());
        for (const Tensor& out : emit_op(op.name, sample.attrs, operands)) {
          if (!is_float(out.dtype())) continue;
          EXPECT_EQ(out.dtype(), widest) << op.name.str();
        }
      }
    }
  }
  for (const char* name : {"add", "where", "concat", "stack", "lerp", "maximum"})
    EXPECT_TRUE(seen.contains(name)) << name;
  // Comparisons: their functions let operands meet.
  const Tensor half = full({2}, 1, DType::F16), third = full({2}, 1.0 / 3);
  EXPECT_EQ(sum(cast(equal(cast(third, DType::F16), third), DType::F32)).item(), 0);
  EXPECT_EQ(sum(cast(less(third, half), DType::F32)).item(), 2);
}

TEST(CastFunctions, WhatDoesNotPromoteIsRefusedWithTheReason) {
  begin();
  Options options = quiet({.opt_level = "O1"});
  const auto words_of = [&](const char* op) {
    return refusal([&] { amp::register_promote_function(options, op); });
  };
  expect_words(words_of("matmul"), {"E0711", "matmul", "low type"});
  expect_words(words_of("softmax"), {"E0711", "softmax", "f32"});
  expect_words(words_of("cache_write"), {"E0711", "cache_write", "keep their types"});
  expect_words(words_of("*"), {"E0711", "promote_function"});
  for (const char* op : {"less", "equal", "stack", "add"}) EXPECT_EQ(words_of(op), "") << op;
  EXPECT_TRUE(options.half_ops.empty() && options.float_ops.empty());
}

}  // namespace
}  // namespace aloft::e2e
