// The update ops with split masters give the bits that they give with masters of their own: every
// step, on any values, on any number of threads.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "ops/evaluate.h"
#include "ops/kernel_run.h"
#include "ops/update.h"
#include "scalar/philox.h"
#include "scalar/split_float.h"

namespace aloft {
namespace {

using testing::run_kernel;
using testing::RunResult;

constexpr std::int64_t kSizes[] = {40007, 3, 0, 33};

// What an update meets at the edges: zeros, denormals, midpoints between neighbours in bf16 (both
// kinds), the largest floats, infinity.
float special(std::int64_t i, float normal) {
  constexpr std::uint32_t kBits[] = {0x80000000u, 0u,          1u,          0x80008000u,
                                     0x00018000u, 0x3f808000u, 0xbf818000u, 0x7f7fffffu,
                                     0xff7f8000u, 0x7f800000u, 0x00007fffu, 0x3f80ffffu};
  return i % 5 == 0 ? std::bit_cast<float>(kBits[i / 5 % std::size(kBits)]) : normal;
}

float normal_at(std::uint64_t key, std::int64_t i) {
  return static_cast<float>(scalar::normal(scalar::RandomKey{7, 0, 0, key}, i));
}

HostArray array(DType t, std::vector<std::int64_t> shape) {
  return HostArray::zeros(t, std::move(shape));
}

struct State {
  std::vector<std::vector<float>> masters;
  std::vector<HostArray> moments;
};

State first_state(int moments, int of_tensors = 0) {
  State s;
  for (std::int64_t n : kSizes) {
    auto& m = s.masters.emplace_back();
    for (std::int64_t i = 0; i < n; ++i) m.push_back(special(i, normal_at(n, i)));
  }
  for (int w = 0; w < moments; ++w)
    for (std::int64_t n : kSizes) s.moments.push_back(array(DType::F32, {n}));
  for (int w = 0; w < of_tensors; ++w)
    for (std::size_t t = 0; t < std::size(kSizes); ++t) s.moments.push_back(array(DType::F32, {}));
  return s;
}

// The operands of a step. Gradients of every second step are 0 here and there, so that values stay.
std::vector<HostArray> operands(const State& s, bool split, DType gradient, int step) {
  std::vector<HostArray> in = {array(DType::F32, {}), array(DType::F32, {}), array(DType::I32, {}),
                               array(DType::I64, {})};
  in[0][0] = 0.01f;
  in[1][0] = 0.75f;
  in[2][0] = step != 2;  // one is skipped
  in[3][0] = step;
  std::vector<HostArray> masters, gradients;
  for (std::size_t t = 0; t < std::size(kSizes); ++t) {
    const std::int64_t n = kSizes[t];
    HostArray& p = in.emplace_back(array(DType::BF16, {n}));
    HostArray& g = gradients.emplace_back(array(gradient, {n}));
    HostArray& m = masters.emplace_back(split ? array(DType::U8, {scalar::rest_bytes(n)})
                                              : array(DType::F32, {n}));
    std::vector<std::uint8_t> memory(scalar::rest_bytes(n));
    const scalar::Rests rests(memory.data(), n);
    for (std::int64_t i = 0; i < n; ++i) {
      p[i] = scalar::f32_of(scalar::put_split(rests, i, s.masters[t][i]));
      g[i] = i % 3 == step % 3 ? 0 : normal_at(100 + step, i);
      if (!split) m[i] = s.masters[t][i];
    }
    if (split) m.values.assign(memory.begin(), memory.end());
    round_to_dtype(g);
  }
  for (const auto& list : {gradients, masters, s.moments})
    in.insert(in.end(), list.begin(), list.end());
  return in;
}

// Reads masters and moments of a result; returns the parameters' bits.
std::vector<std::vector<unsigned char>> take(const RunResult& r, bool split, State& s) {
  constexpr std::size_t n = std::size(kSizes);
  for (std::size_t t = 0; t < n; ++t) {
    const HostArray &p = r.out[t], &m = r.out[n + t];
    std::vector<std::uint8_t> memory(split ? m.numel() : 0);
    if (split) store_bytes(m, memory.data());
    const scalar::ConstRests rests(memory.data(), kSizes[t]);
    for (std::int64_t i = 0; i < kSizes[t]; ++i)
      s.masters[t][i] =
          split ? scalar::joined(rests, scalar::bf16_of(p[i]), i) : static_cast<float>(m[i]);
  }
  s.moments.assign(r.out.begin() + 2 * n, r.out.end());
  return {r.bits.begin(), r.bits.begin() + n};
}

CallSpec call_of(const std::string& op, Attrs attrs, const std::vector<HostArray>& in) {
  CallSpec call{op, std::move(attrs), {}, {}};
  for (const HostArray& a : in) call.in.push_back({a.dtype, Shape::of(a.shape)});
  call.out = infer_types(op_named(op), call.attrs, call.in, {});
  return call;
}

Attrs attrs_of(const optim::FormulaRecord& formula, bool split, Ints decay = {1, 0, 1, 1}) {
  UpdateForm form;
  form.master = split ? StateFormat::Split : StateFormat::F32;
  form.decay = std::move(decay), form.weight_decay = 0.1;
  return update_attrs_of({&formula, formula.options}, form, 4);
}

std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v); }

bool same_bits(const State& a, const State& b) {
  for (std::size_t t = 0; t < a.masters.size(); ++t)
    for (std::size_t i = 0; i < a.masters[t].size(); ++i) {
      const float x = a.masters[t][i], y = b.masters[t][i];
      if (std::isnan(x) && std::isnan(y)) continue;
      if (std::bit_cast<std::uint32_t>(x) != std::bit_cast<std::uint32_t>(y)) return false;
    }
  for (std::size_t m = 0; m < a.moments.size(); ++m)
    for (std::int64_t i = 0; i < a.moments[m].numel(); ++i)
      if (bits(a.moments[m][i]) != bits(b.moments[m][i])) return false;
  return true;
}

// A formula and the gradients' type.
class SplitUpdate : public ::testing::TestWithParam<std::tuple<std::string_view, DType>> {
 protected:
  // The call, behind the one that sums where the formula needs sums.
  RunResult update(const State& s, bool split, int step, int threads) const {
    const auto& [name, gradient] = GetParam();
    const optim::FormulaRecord& formula = optim::formula_named(name);
    std::vector<HostArray> in = operands(s, split, gradient, step);
    if (formula.sums > 0) {
      const RunResult sums = run(sums_op_name(formula), formula, split, in, threads);
      EXPECT_EQ(sums.problem, "");
      in.push_back(sums.out[0]);
    }
    return run(update_op_name(formula), formula, split, in, threads);
  }

 private:
  static RunResult run(const std::string& op, const optim::FormulaRecord& formula, bool split,
                       const std::vector<HostArray>& in, int threads) {
    const CallSpec call = call_of(op, attrs_of(formula, split), in);
    return run_kernel(*choose_kernel(cpu_backend(), call).kernel, call, in, {.threads = threads});
  }
};

TEST_P(SplitUpdate, HasTheBitsOfMastersOfTheirOwn) {
  const auto& formula = optim::formula_named(std::get<0>(GetParam()));
  State own = first_state(formula.element_states(), formula.tensor_states), split = own;
  for (int step = 0; step < 8; ++step) {
    const State before = split;
    const auto parameters = take(update(own, false, step, 1), false, own);
    for (int threads : {1, 2, 4}) {
      const RunResult got = update(before, true, step, threads);
      EXPECT_EQ(got.problem, "");
      EXPECT_TRUE(take(got, true, split) == parameters) << "step " << step;
      EXPECT_TRUE(same_bits(own, split)) << "step " << step << ", " << threads << " threads";
    }
  }
}

std::vector<std::string_view> names_of_formulas() {
  std::vector<std::string_view> names;
  for (const optim::FormulaRecord* formula : optim::formulas())
    if (!formula->is_of_tensors) names.push_back(formula->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, SplitUpdate,
                         ::testing::Combine(::testing::ValuesIn(names_of_formulas()),
                                            ::testing::Values(DType::BF16, DType::F32)));

TEST(SplitUpdate, TheMeaningReadsAndWritesTheSameBits) {
  // Without a gradient a step of SGD changes nothing: what comes out is what went in.
  const State s = first_state(0);
  std::vector<HostArray> in = operands(s, true, DType::BF16, 1);
  for (std::size_t t = 0; t < std::size(kSizes); ++t)
    for (HostNumber& g : in[4 + std::size(kSizes) + t].values) g = 0;
  const Attrs attrs = attrs_of(optim::formula_named("sgd"), true, {0, 0, 0, 0});
  const auto out = evaluate_op(op_named("sgd_update"), attrs, in);
  for (std::size_t t = 0; t < std::size(kSizes); ++t) {
    EXPECT_EQ(out[t].values, in[4 + t].values);
    EXPECT_EQ(out[4 + t].values, in[12 + t].values);
  }
}

TEST(SplitUpdate, OperandsThatDoNotFitAreRefused) {
  const auto in = operands(first_state(0), true, DType::BF16, 1);
  const auto said = [&](std::size_t i, const TensorType& type) -> std::string {
    std::vector<TensorType> types;
    for (const HostArray& a : in) types.push_back({a.dtype, Shape::of(a.shape)});
    types[i] = type;
    try {
      infer_types(op_named("sgd_update"), attrs_of(optim::formula_named("sgd"), true), types, {});
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(said(4, {DType::F16, {40007}}).find("bf16"), std::string::npos);
  EXPECT_NE(said(12, {DType::U8, {80014}}).find("u8[85015]"), std::string::npos);
  EXPECT_NE(said(12, {DType::F32, {40007}}).find("u8[85015]"), std::string::npos);
}

}  // namespace
}  // namespace aloft
