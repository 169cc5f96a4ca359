// The update ops with states in bf16 and in blocks of 8 bits, and with bf16 parameters rounded at
// random: the bits of the same step on fp32, each value put away as scalar/ says, on any number of
// threads; and what rounding to nearest would lose adds up.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "ops/evaluate.h"
#include "ops/kept_states.h"
#include "ops/kernel_run.h"
#include "ops/update.h"
#include "ops/values_of_update.h"
#include "scalar/philox.h"
#include "scalar/stochastic_rounding.h"

namespace aloft {
namespace {

using testing::run_kernel;
using testing::RunResult;

const std::vector<std::int64_t> kSizes = {40007, 3, 0, 33, 256, 257};
const int kCount = static_cast<int>(kSizes.size());

float normal_at(std::uint64_t key, std::int64_t i) {
  return static_cast<float>(
      scalar::normal(scalar::RandomKey{7, 0, 0, key}, static_cast<std::uint64_t>(i)));
}

// Sizes that a block's codes hold, below the normal ones too, and sizes that they do not.
float of_any_size(std::uint64_t key, std::int64_t i) {
  return std::ldexp(normal_at(key, i), -static_cast<int>(i % 41));
}

struct Form {
  StateFormat states = StateFormat::F32;
  Rounding rounding = Rounding::Nearest;
  DType parameter = DType::F32;
};

// One call of a formula's update: its operands, and what they are.
class Call {
 public:
  Call(const optim::FormulaRecord& formula, const Form& form, std::vector<std::int64_t> sizes)
      : formula_(formula), form_(form), sizes_(std::move(sizes)) {
    UpdateForm f;
    f.states = form.states, f.rounding = form.rounding, f.weight_decay = 0.1;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      f.decay.push_back(i != 1);
      f.keys.push_back(static_cast<std::int64_t>(1000 + i));
    }
    const auto count = static_cast<std::int64_t>(sizes_.size());
    attrs_ = update_attrs_of({&formula, formula.options}, f, count);
    layout_ = update_layout(update_attrs(attrs_), formula);
  }

  const UpdateLayout& layout() const { return layout_; }
  bool is_of_tensor(int w) const { return w >= layout_.element_states(); }
  KeptState kept(int w) const {
    return {form_.states, {!formula_.is_not_negative(static_cast<std::size_t>(w))}};
  }

  // Operands of a step: `values` of parameters, and `states` [which][tensor] as floats.
  std::vector<HostArray> operands(const std::vector<HostArray>& parameters,
                                  const std::vector<HostArray>& states, int step,
                                  double gradient = 0) const {
    std::vector<HostArray> in = {HostArray::zeros(DType::F32, {}), HostArray::zeros(DType::F32, {}),
                                 HostArray::zeros(DType::I32, {}),
                                 HostArray::zeros(DType::I64, {})};
    in[0][0] = 0.01f, in[1][0] = 0.75f, in[2][0] = 1, in[3][0] = step;
    in.insert(in.end(), parameters.begin(), parameters.end());
    for (const std::int64_t n : sizes_) {
      HostArray& g = in.emplace_back(HostArray::zeros(DType::F32, {n}));
      for (std::int64_t i = 0; i < n; ++i)
        g[i] = gradient != 0       ? float(gradient)
               : i % 3 == step % 3 ? (i % 2 == 0 ? 0.0f : -0.0f)
                                   : of_any_size(100 + static_cast<std::uint64_t>(step), i);
    }
    in.insert(in.end(), states.begin(), states.end());
    return in;
  }

  // The same of the values that the results in bytes stand for: the kernel's beside those of the
  // op's meaning, and how far they may be apart.
  struct Both {
    std::vector<double> kernel, meaning, apart;
  };
  std::vector<Both> values(std::vector<HostArray> in, int step) const {
    if (layout_.has_random) {
      HostArray& rng = in.emplace_back(HostArray::zeros(DType::I64, {3}));
      rng[0] = 42, rng[1] = step;
    }
    const std::string op = update_op_name(formula_);
    const std::vector<HostArray> kernel = result(op, in, 1);
    const std::vector<HostArray> meaning = evaluate_op(op_named(op), attrs_, in);
    std::vector<Both> all;
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      const auto meant = values_of_update(op, attrs_, meaning, i);
      EXPECT_EQ(meant.has_value(), kernel[i].dtype == DType::U8);
      if (meant)
        all.push_back({values_of_update(op, attrs_, kernel, i)->values.doubles(),
                       meant->values.doubles(), meant->apart});
    }
    return all;
  }
  // Behind the call that sums where the formula needs sums.
  std::vector<HostArray> run(std::vector<HostArray> in, int step, int threads) const {
    if (formula_.sums > 0) in.push_back(result(sums_op_name(formula_), in, threads)[0]);
    if (layout_.has_random) {
      HostArray& rng = in.emplace_back(HostArray::zeros(DType::I64, {3}));
      rng[0] = 42, rng[1] = step;
    }
    return result(update_op_name(formula_), in, threads);
  }

 private:
  std::vector<HostArray> result(const std::string& op, const std::vector<HostArray>& in,
                                int threads) const {
    CallSpec call{op, attrs_, {}, {}};
    for (const HostArray& a : in) call.in.push_back({a.dtype, Shape::of(a.shape)});
    call.out = infer_types(op_named(op), call.attrs, call.in, {});
    const RunResult r =
        run_kernel(*choose_kernel(cpu_backend(), call).kernel, call, in, {.threads = threads});
    EXPECT_EQ(r.problem, "");
    return r.out;
  }

  const optim::FormulaRecord& formula_;
  Form form_;
  std::vector<std::int64_t> sizes_;
  Attrs attrs_;
  UpdateLayout layout_;
};

std::vector<HostArray> first_parameters(DType type) {
  std::vector<HostArray> all;
  for (const std::int64_t n : kSizes) {
    HostArray& p = all.emplace_back(HostArray::zeros(type, {n}));
    for (std::int64_t i = 0; i < n; ++i) p[i] = normal_at(static_cast<std::uint64_t>(n), i);
    round_to_dtype(p);
  }
  return all;
}

std::vector<HostArray> empty_states(const Call& call, const std::vector<std::int64_t>& sizes) {
  std::vector<HostArray> all;
  for (int w = 0; w < call.layout().states; ++w)
    for (const std::int64_t n : sizes) {
      const TensorType t = call.layout().state_type(w, {n});
      all.push_back(HostArray::zeros(t.dtype, t.shape.max_extents()));
    }
  return all;
}

std::vector<std::string_view> names_of_formulas() {
  std::vector<std::string_view> names;
  for (const optim::FormulaRecord* formula : optim::formulas())
    if (!formula->is_of_tensors) names.push_back(formula->name);
  return names;
}

class LowStates : public ::testing::TestWithParam<std::tuple<std::string_view, StateFormat>> {};
INSTANTIATE_TEST_SUITE_P(All, LowStates,
                         ::testing::Combine(::testing::ValuesIn(names_of_formulas()),
                                            ::testing::Values(StateFormat::F32, StateFormat::BF16,
                                                              StateFormat::Block8)));

TEST_P(LowStates, HaveTheBitsOfAStepOnFp32) {
  const auto& [name, format] = GetParam();
  const optim::FormulaRecord& formula = optim::formula_named(name);
  const Call low(formula, {format, Rounding::Stochastic, DType::BF16}, kSizes),
      wide(formula, {}, kSizes);
  const int states = low.layout().states;
  std::vector<HostArray> parameters = first_parameters(DType::BF16),
                         kept = empty_states(low, kSizes);
  for (int step = 0; step < 5; ++step) {
    // The same step on fp32, from what is kept.
    std::vector<HostArray> values, floats;
    for (const HostArray& p : parameters) {
      values.push_back(p);
      values.back().dtype = DType::F32;
    }
    for (std::size_t k = 0; k < kept.size(); ++k) {
      if (low.is_of_tensor(static_cast<int>(k) / kCount)) {
        floats.push_back(kept[k]);
        continue;
      }
      const std::int64_t n = kSizes[k % kSizes.size()];
      floats.push_back(HostArray::zeros(DType::F32, {n}));
      const auto read = low.kept(static_cast<int>(k) / kCount).read(kept[k], n);
      floats.back().values.assign(read.begin(), read.end());
    }
    const auto want = wide.run(wide.operands(values, floats, step), step, 1);
    std::vector<HostArray> got;
    for (const int threads : {1, 2, 4}) {
      const auto again = low.run(low.operands(parameters, kept, step), step, threads);
      for (std::size_t k = 0; threads > 1 && k < got.size(); ++k)
        ASSERT_EQ(again[k].values, got[k].values) << threads << " threads";
      got = again;
    }
    for (int i = 0; i < kCount; ++i) {
      const scalar::RandomKey key{42, static_cast<std::uint64_t>(step), 0,
                                  static_cast<std::uint64_t>(1000 + i)};
      const auto bits = [&](int slot, std::int64_t j) {
        return scalar::rounding_bits(key, slot, static_cast<std::uint64_t>(j));
      };
      for (std::int64_t j = 0; j < kSizes[static_cast<std::size_t>(i)]; ++j)
        ASSERT_EQ(double(got[i][j]),
                  rounded_at_random(want[i][j], DType::BF16, bits(scalar::kParameterSlot, j)))
            << "step " << step << ", tensor " << i << ", element " << j;
      for (int w = 0; w < states; ++w) {
        const std::size_t at = static_cast<std::size_t>((1 + w) * kCount + i);
        if (low.is_of_tensor(w)) {
          ASSERT_EQ(got[at].values, want[at].values) << formula.states[w] << ", step " << step;
          continue;
        }
        HostArray as_kept = got[at];
        const std::vector<double> v(want[at].values.begin(), want[at].values.end());
        low.kept(w).write(
            v, [&](std::int64_t j) { return bits(w, j); }, as_kept);
        ASSERT_EQ(got[at].values, as_kept.values) << formula.states[w] << ", step " << step;
      }
    }
    parameters.assign(got.begin(), got.begin() + kCount);
    kept.assign(got.begin() + kCount, got.end());
  }
}

// A mean that takes in a thousandth of a constant each step moves by less than half a step of
// bf16, let alone of 8 bits, long before it is there.
TEST(LowStates, SmallStepsAddUp) {
  const optim::FormulaRecord& adam = optim::formula_named("adamw");
  for (const StateFormat format : {StateFormat::BF16, StateFormat::Block8}) {
    const Call call(adam, {format}, {512});
    std::vector<HostArray> parameters = {HostArray::zeros(DType::F32, {512})},
                           kept = empty_states(call, {512});
    for (int step = 0; step < 2000; ++step) {
      const auto out = call.run(call.operands(parameters, kept, step, 2.0), step, 1);
      parameters = {out[0]};
      kept = {out[1], out[2]};
    }
    const auto v = call.kept(1).read(kept[1], 512);
    double mean = 0;
    for (const double x : v) mean += x / 512;
    const double want = 2.25 * (1 - std::pow(0.999, 2000));  // the gradient is 0.75 * 2
    EXPECT_NEAR(mean, want, 0.03 * want) << name_of(format);
  }
}

// The bytes of a scale and of its codes differ by more than one where the values are neighbours;
// what acc-check judges are the values.
TEST(LowStates, StandForValuesThatAreNeighboursOfTheMeanings) {
  for (const char* name : {"adamw", "lion", "momentum"}) {
    const Call call(optim::formula_named(name), {StateFormat::Block8}, kSizes);
    std::vector<HostArray> kept = empty_states(call, kSizes);
    const std::vector<HostArray> parameters = first_parameters(DType::F32);
    int moved = 0;
    for (int step = 0; step < 3; ++step) {
      const std::vector<HostArray> in = call.operands(parameters, kept, step);
      for (const Call::Both& state : call.values(in, step))
        for (std::size_t j = 0; j < state.meaning.size(); ++j) {
          const double off = std::abs(state.kernel[j] - state.meaning[j]);
          ASSERT_LE(off, state.apart[j] + 0x1p-20 * std::abs(state.meaning[j]))
              << name << ", step " << step << ", element " << j;
          // And no wider than the next code but one.
          ASSERT_LE(state.apart[j], 0.13 * std::abs(state.meaning[j]) + 0x1p-13) << name;
          moved += off > 0;
        }
      const auto out = call.run(in, step, 1);
      kept.assign(out.begin() + kCount, out.end());
    }
    EXPECT_GT(moved, 0) << name;  // the meaning's scale is rounded from doubles
  }
}

TEST(LowStates, OperandsThatDoNotFitAreRefused) {
  const optim::FormulaRecord& adam = optim::formula_named("adam");
  const Call call(adam, {StateFormat::Block8}, {300});
  const auto said = [&](std::size_t i, const TensorType& type) -> std::string {
    std::vector<TensorType> types;
    for (const HostArray& a :
         call.operands({HostArray::zeros(DType::F32, {300})}, empty_states(call, {300}), 0))
      types.push_back({a.dtype, Shape::of(a.shape)});
    types.push_back({DType::I64, {3}});
    types[i] = type;
    UpdateForm form;
    form.states = StateFormat::Block8, form.keys = {1}, form.decay = {0};
    try {
      infer_types(op_named("adam_update"), update_attrs_of({&adam, adam.options}, form, 1), types,
                  {});
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(said(7, {DType::U8, {308}}), "");
  EXPECT_NE(said(7, {DType::U8, {300}}).find("u8[308]"), std::string::npos);
  EXPECT_NE(said(6, {DType::F32, {300}}).find("u8[308]"), std::string::npos);
  EXPECT_NE(said(8, {DType::I64, {2}}).find("i64[3]"), std::string::npos);
}

}  // namespace
}  // namespace aloft
