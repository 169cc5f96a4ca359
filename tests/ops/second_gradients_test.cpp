// Gradients of gradients: every op that can be differentiated twice, against central differences of
// its first gradient in double; and where rounding would show, on the processor in f32.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autodiff/differentiate.h"
#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "ops/evaluate.h"
#include "ops/graph_emitter.h"
#include "ops/linear_cross_entropy.h"
#include "ops/logsumexp.h"
#include "ops/norm.h"
#include "ops/prod_grad.h"
#include "ops/reduce.h"
#include "ops/sample_inputs.h"
#include "ops/var.h"
#include "scalar/philox.h"
#include "types/tolerance.h"

namespace aloft {
namespace {

using testing::case_text;
using testing::make_inputs;
using testing::samples_of;

constexpr double kStep = 1e-5;
constexpr std::int64_t kMostElements = 160;

HostArray random_like(const HostArray& a, std::uint64_t identity) {
  HostArray r = a;
  for (std::int64_t i = 0; i < r.numel(); ++i)
    r[i] = scalar::normal(scalar::RandomKey{77, 0, 0, identity}, i);
  return r;
}

double dot(const HostArray& a, const HostArray& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) sum += a[i] * b[i];
  return sum;
}

// The first gradients "g*" of one output, and the second ones "h*": gradients of
// sum <w_i, g_i> with random w_i.
class Twice {
 public:
  Twice(const OpDef& op, const Attrs& attrs, const std::vector<HostArray>& in, std::size_t out) {
    EmitterScope scope(emitter_);
    std::vector<Tensor> operands;
    for (std::size_t i = 0; i < in.size(); ++i)
      operands.push_back(input("in" + std::to_string(i), in[i]));
    const Tensor y = emitter_.emit({op.name, attrs}, operands, {})[out];
    if (!is_float(y.dtype())) return;
    const HostArray like = HostArray::zeros(DType::F64, y.shape().max_extents());
    const auto first =
        differentiate(graph_, emitter_, y, input("seed", random_like(like, 1)), operands);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (!first[i].is_defined() || in[i].dtype != DType::F64) continue;
      const std::string name = std::to_string(i);
      graph_.set_output("g" + name, first[i].id());
      has_first_ = true;
      const Tensor w = input("w" + name, random_like(in[i], 10 + i));
      const auto second = differentiate(graph_, emitter_, first[i], w, operands);
      for (std::size_t k = 0; k < in.size(); ++k)
        if (second[k].is_defined() && in[k].dtype == DType::F64)
          graph_.set_output("h" + name + "_" + std::to_string(k), second[k].id());
    }
  }

  bool has_first() const { return has_first_; }

  // <second gradient, direction> and its counterpart by differences, for operand k.
  void check(std::size_t k, const std::string& what) {
    const Name name("in" + std::to_string(k));
    const HostArray base = values_[name], direction = random_like(base, 100 + k);
    double exact = 0, magnitude = 1;
    for (const auto& [output, h] : interpret(graph_, values_).outputs)
      if (output.str()[0] == 'h' && output.str().ends_with("_" + std::to_string(k))) {
        exact += dot(h, direction);
        for (std::int64_t i = 0; i < h.numel(); ++i) magnitude += std::abs(h[i] * direction[i]);
      }
    double side[2] = {}, noise = 0;
    for (int s = 0; s < 2; ++s) {
      for (std::int64_t i = 0; i < base.numel(); ++i)
        values_[name][i] = base[i] + (s ? -kStep : kStep) * direction[i];
      for (const auto& [output, g] : interpret(graph_, values_).outputs)
        if (output.str()[0] == 'g') side[s] += dot(g, values_[Name("w" + output.str().substr(1))]);
      noise += 1e-10 * std::abs(side[s]);
    }
    values_[name] = base;
    EXPECT_NEAR(exact, (side[0] - side[1]) / (2 * kStep), 3e-6 * magnitude + noise)
        << what << " operand " << k;
  }

 private:
  Tensor input(const std::string& name, const HostArray& a) {
    values_[Name(name)] = a;
    return emitter_.handle(graph_.add_input(Name(name), {a.dtype, Shape::of(a.shape)}));
  }

  bool has_first_ = false;
  Graph graph_;
  GraphEmitter emitter_{graph_};
  std::map<Name, HostArray> values_;
};

class SecondGradients : public ::testing::TestWithParam<Name> {};

TEST_P(SecondGradients, MatchDifferencesOfTheFirst) {
  const OpDef& op = op_named(GetParam());
  int checked = 0;
  for (const Sample& sample : samples_of(op)) {
    if (!sample.gradient) continue;
    const auto in = make_inputs(sample, DType::F64, 7);
    std::int64_t elements = 0;
    bool is_double = true;
    for (const HostArray& a : in) {
      elements += a.numel();
      is_double = is_double && (a.dtype == DType::F64 || !is_float(a.dtype));
    }
    if (elements > kMostElements || !is_double) continue;
    const std::size_t outs = evaluate_op(op, sample.attrs, in).size();
    for (std::size_t out = 0; out < outs; ++out) {
      Twice twice(op, sample.attrs, in, out);
      for (std::size_t k = 0; k < in.size(); ++k)
        if (in[k].dtype == DType::F64 && in[k].numel() > 0 && twice.has_first()) {
          twice.check(k, case_text(op, sample, in));
          ++checked;
        }
    }
  }
  EXPECT_GT(checked, 0) << "no sample is small and in double throughout";
}

std::vector<Name> ops_with_gradients() {
  std::vector<Name> names;
  for (const OpDef& op : op_table())
    if (testing::has_slope(op)) names.push_back(op.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, SecondGradients, ::testing::ValuesIn(ops_with_gradients()),
                         [](const auto& info) { return info.param.str(); });

// On the processor, op by op.
class SecondGradientsInF32 : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { use_device(cpu_device()); }
};

// Gradient by x of <w, gradient of sum(y) by x>.
std::vector<double> second(const Tensor& y, const Tensor& x, const Tensor& w) {
  Emitter& e = *y.emitter();
  const Tensor g = e.gradients(y, scalar_like(y, 1), std::vector{x}, {})[0];
  const Tensor along = sum(g * w);
  return e.gradients(along, scalar_like(along, 1), std::vector{x}, {})[0].to_vector();
}

TEST_F(SecondGradientsInF32, IgnoredRowsAreNoNaN) {
  const Tensor targets = from_ints({1, -100, 0}, {3});
  for (const char* reduction : {"mean", "sum"})
    for (const double smoothing : {0.0, 0.2}) {
      const CrossEntropyAttrs attrs{-100, smoothing, reduction};
      const Tensor x = from_floats({1, 2, 3, 4, 5, 6}, {3, 2});
      const Tensor w = from_floats({1, -1, 2, 0.5f, 1, 3}, {3, 2});
      const auto h = second(cross_entropy(x, targets, attrs), x, w);
      EXPECT_NE(h[0], 0);
      EXPECT_EQ(h[2], 0);
      for (const double v : h) EXPECT_TRUE(std::isfinite(v)) << reduction << " " << smoothing;
      const Tensor weight = from_floats({1, 2, -1, 0.5f}, {2, 2});
      for (const double v : second(linear_cross_entropy(x, weight, targets, attrs), x, w))
        EXPECT_TRUE(std::isfinite(v)) << "linear, " << reduction << " " << smoothing;
    }
}

// A target that is no class is wrong, not ignored: where it is known only as the program runs, it
// shows.
TEST_F(SecondGradientsInF32, WrongTargetsAreNaNInPrograms) {
  auto second_of_row = compile([&](Tensor x, Tensor w, Tensor targets) {
    const Tensor loss = cross_entropy(x, targets);
    Emitter& e = *loss.emitter();
    const Tensor g = e.gradients(loss, scalar_like(loss, 1), std::vector{x}, {})[0];
    const Tensor along = sum(g * w);
    return e.gradients(along, scalar_like(along, 1), std::vector{x}, {})[0];
  });
  const Tensor x = from_floats({1, 2, 3, 4}, {2, 2}), w = from_floats({1, 2, 3, 4}, {2, 2});
  EXPECT_TRUE(std::isnan(second_of_row(x, w, from_ints({1, 7}, {2})).to_vector()[2]));
}

// What is taken off before exponentials changes nothing; a gradient through it would leave its
// rounding errors at the largest element.
TEST_F(SecondGradientsInF32, NothingGoesThroughTheLargestElement) {
  constexpr int kElements = 4097;
  std::vector<float> values(kElements), along(kElements);
  for (int i = 0; i < kElements; ++i) {
    values[i] = static_cast<float>(i % 13) * 0.01f;
    along[i] = static_cast<float>(i % 7) - 3.25f;
  }
  values[5] = 0.5f;
  double sum = 0, mean = 0;
  for (int i = 0; i < kElements; ++i) sum += std::exp(static_cast<double>(values[i]));
  for (int i = 0; i < kElements; ++i)
    mean += std::exp(static_cast<double>(values[i])) / sum * static_cast<double>(along[i]);
  const double want =
      std::exp(static_cast<double>(values[5])) / sum * (static_cast<double>(along[5]) - mean);
  // 32 roundoffs of f32: the table's 16 of a chain, for the exponentials and for what they
  // multiply.
  const auto near = [&](double got) { return std::abs(got - want) < 2e-6 * std::abs(want); };
  const Tensor x = from_floats(values, {1, kElements}), w = from_floats(along, {1, kElements});
  const double by_logsumexp = second(logsumexp(x, {-1}), x, w)[5];
  EXPECT_TRUE(near(by_logsumexp)) << by_logsumexp << " for " << want;
  const double by_loss = second(cross_entropy(x, from_ints({9}, {1})), x, w)[5];
  EXPECT_TRUE(near(by_loss)) << by_loss << " for " << want;
}

TEST_F(SecondGradientsInF32, ZerosOfAProductHaveThem) {
  const Tensor x = from_floats({0, 2, 3, 0, 0, 5}, {2, 3}),
               w = from_floats({1, 2, 4, 1, 2, 4}, {2, 3});
  // d2 / dx_i dx_j is the product of the third.
  EXPECT_EQ(second(prod(x, {1}), x, w),
            (std::vector<double>{3 * 2 + 2 * 4, 3 * 1, 2 * 1, 10, 5, 0}));
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor far = from_floats({inf, 2, 3}, {3});
  const Tensor y = prod(far);
  EXPECT_EQ(y.emitter()->gradients(y, scalar_like(y, 1), std::vector{far}, {})[0].to_vector(),
            (std::vector<double>{6, INFINITY, INFINITY}));
  EXPECT_THROW(prod_grad(far, {}, std::vector<Tensor>(kMostProdDirections + 1, far)), UserError);
}

// Where a formula has a hole, what `where` does not take has no derivative that could come back.
TEST_F(SecondGradientsInF32, HolesOfFormulasAreNoNaN) {
  const auto finite = [](const std::vector<double>& h, const char* what) {
    for (const double v : h) EXPECT_TRUE(std::isfinite(v)) << what;
  };
  const Tensor zero = from_floats({0, 0, 3}, {3}), other = from_floats({0, 2, 2}, {3});
  const Tensor w = from_floats({1, 2, 3}, {3});
  finite(second(sum(pow(zero, other)), zero, w), "pow by its base");
  finite(second(sum(pow(zero, other)), other, w), "pow by its exponent");
  finite(second(sum(atan2(zero, other)), zero, w), "atan2");
  const Tensor rows = from_floats({0, 0, 3, 4}, {2, 2}), v = from_floats({1, 2, 3, 4}, {2, 2});
  finite(second(sum(norm(rows, {1})), rows, v), "norm");
}

// Whatever the exponent is, also 0, the slope of a^b along a changes along b: by 1 / a there.
TEST_F(SecondGradientsInF32, ASlopeThatIsZeroHasASlope) {
  const Tensor a = from_floats({2, 0, 4}, {3}), b = from_floats({0, 0, 0}, {3});
  const Tensor y = pow(a, b);
  Emitter& e = *y.emitter();
  const Tensor slope = e.gradients(sum(y), scalar_like(y, 1), std::vector{a}, {})[0];
  EXPECT_EQ(slope.to_vector(), (std::vector<double>{0, 0, 0}));
  const Tensor mixed = e.gradients(sum(slope), scalar_like(slope, 1), std::vector{b}, {})[0];
  const std::vector<double> got = mixed.to_vector(), want = {0.5, 0, 0.25};
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], allowed_error(DType::F32, 1, want[i]));
}

}  // namespace
}  // namespace aloft
