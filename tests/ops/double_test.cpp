// f64 is what gradients are checked in: every op's values and gradients on the cpu back end, on all
// samples, are those of its meaning in double, not those of an f32 somewhere on the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

#include "autodiff/differentiate.h"
#include "backends/cpu/cpu_backend.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/eager_emitter.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/conv2d.h"
#include "ops/cross_entropy.h"
#include "ops/evaluate.h"
#include "ops/graph_emitter.h"
#include "ops/linear.h"
#include "ops/pool2d.h"
#include "ops/reshape.h"
#include "ops/sample_inputs.h"
#include "scalar/philox.h"
#include "types/tolerance.h"

namespace aloft {
namespace {

using testing::case_text;
using testing::make_inputs;
using testing::samples_of;

// An element may be off by a relative 1e-12; by what the meaning moves where its operands move by
// that; and by some roundings of the largest number, where terms cancel that no operand moves (the
// gradient of a softmax over one).
constexpr double kLimit = 1e-12;
constexpr double kRoundings = 32;

HostArray random_like(const HostArray& a, std::uint64_t identity) {
  HostArray r = a;
  for (std::int64_t i = 0; i < r.numel(); ++i)
    r[i] = scalar::normal(scalar::RandomKey{99, 0, 0, identity}, i);
  round_to_dtype(r);
  return r;
}

// Values, and gradients by every float result: "out0", "grad0_1".
using Results = std::map<std::string, HostArray>;

std::string gradient_name(std::size_t out, std::size_t operand) {
  return "grad" + std::to_string(out) + "_" + std::to_string(operand);
}

Results meaning(const OpDef& op, const Sample& sample, const std::vector<HostArray>& in,
                const std::function<HostArray(HostArray, std::uint64_t)>& prepare,
                std::vector<HostArray>& seeds) {
  Graph graph;
  GraphEmitter emitter(graph);
  EmitterScope scope(emitter);
  std::map<Name, HostArray> given;
  const auto input = [&](const std::string& name, const HostArray& a) {
    given[name] = prepare(a, given.size());
    return emitter.handle(graph.add_input(name, {a.dtype, Shape::of(a.shape)}));
  };
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < in.size(); ++i)
    operands.push_back(input("in" + std::to_string(i), in[i]));
  const std::vector<Tensor> out = emitter.emit({op.name, sample.attrs}, operands, {});
  std::vector<HostArray> prepared;
  for (std::size_t i = 0; i < in.size(); ++i)
    prepared.push_back(given.at("in" + std::to_string(i)));
  const std::vector<HostArray> values = evaluate_op(op, sample.attrs, prepared);
  for (std::size_t o = 0; o < out.size(); ++o) {
    graph.set_output("out" + std::to_string(o), out[o].id());
    seeds.push_back(random_like(values[o], 1000 + o));
    if (!is_float(out[o].dtype()) || op.gradient == OpDef::Gradient::None || !sample.gradient)
      continue;
    const Tensor seed = input("seed" + std::to_string(o), seeds[o]);
    const auto gradients = differentiate(graph, emitter, out[o], seed, operands);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (gradients[i].is_defined() && is_float(in[i].dtype))
        graph.set_output(gradient_name(o, i), gradients[i].id());
  }
  Results results;
  for (auto& [name, array] : interpret(graph, given).outputs) results[name.str()] = array;
  return results;
}

Tensor on_device(const HostArray& a) {
  std::vector<std::byte> bytes(a.values.size() * size_of(a.dtype));
  store_bytes(a, bytes.data());
  const Tensor t = eager().from_host({a.dtype, Shape::of(a.shape)}, bytes.data());
  return Tensor(&eager_session(), t.id(), t.held());
}

HostArray read(const Tensor& t) {
  HostArray a = HostArray::zeros(t.dtype(), t.shape().max_extents());
  const std::vector<double> v = t.to_vector();
  a.values.assign(v.begin(), v.end());
  return a;
}

Results eagerly(const OpDef& op, const Sample& sample, const std::vector<HostArray>& in,
                const std::vector<HostArray>& seeds, const Results& want) {
  Results results;
  for (std::size_t o = 0; o < seeds.size(); ++o) {
    std::vector<Tensor> operands;
    for (const HostArray& a : in) operands.push_back(on_device(a));
    const std::vector<Tensor> out = eager_session().emit({op.name, sample.attrs}, operands, {});
    results["out" + std::to_string(o)] = read(out[o]);
    std::vector<Tensor> wrt;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (want.contains(gradient_name(o, i))) {
        wrt.push_back(operands[i]);
        places.push_back(i);
      }
    if (wrt.empty()) continue;
    const auto gradients = eager_session().gradients(out[o], on_device(seeds[o]), wrt, {});
    for (std::size_t k = 0; k < places.size(); ++k)
      results[gradient_name(o, places[k])] = read(gradients[k]);
  }
  return results;
}

double largest(const HostArray& a) {
  double most = 0;
  for (double v : a.values)
    if (std::isfinite(v)) most = std::max(most, std::abs(v));
  return most;
}

// How far each element of the meaning moves where every float operand and seed moves by `kLimit` of
// itself, up or down: an element's condition. Moved further and scaled, so that the meaning's own
// rounding does not show.
Results movement(const OpDef& op, const Sample& sample, const std::vector<HostArray>& in,
                 const Results& want) {
  constexpr double kMoved = 1e-8;
  constexpr int kDraws = 3;
  Results sum;
  for (int draw = 0; draw < kDraws; ++draw) {
    const auto moved = [&](HostArray a, std::uint64_t identity) {
      for (std::int64_t i = 0; is_float(a.dtype) && i < a.numel(); ++i) {
        const auto bits = scalar::random_bits(scalar::RandomKey{5, 0, 0, identity + 100 * draw}, i);
        if (std::abs(a[i]) < 1e300) a[i] *= 1 + (bits & 1 ? kMoved : -kMoved);
      }
      return a;
    };
    std::vector<HostArray> seeds;
    for (auto& [name, there] : meaning(op, sample, in, moved, seeds)) {
      HostArray& total =
          sum.try_emplace(name, HostArray::zeros(DType::F64, there.shape)).first->second;
      for (std::int64_t i = 0; i < there.numel(); ++i) {
        const double by = std::abs(there[i] - want.at(name)[i]) * kLimit / kMoved;
        if (std::isfinite(by)) total[i] += by;
      }
    }
  }
  return sum;
}

// The factor on the limits of results in double: an op whose operands have types of their own
// computes in those, and its samples say how near it comes.
double factor_of(const Sample& sample) {
  const bool takes_double =
      std::any_of(sample.in.begin(), sample.in.end(),
                  [](const SampleInput& in) { return is_float(in.dtype) && !in.fixed_dtype; });
  return takes_double ? 1 : sample.tolerance;
}

// "" or the first element that is off. `scale`: of the terms, which are rounded on their way.
std::string compare(const HostArray& got, const HostArray& want, const HostArray& movement,
                    double scale, double factor) {
  if (got.dtype != want.dtype || got.shape != want.shape) return "another type";
  HostArray rounded = want;  // infinities are judged after rounding
  round_to_dtype(rounded);
  const double limit = factor * std::max(kLimit, 4 * unit_roundoff(want.dtype));
  const double roundings = kRoundings * unit_roundoff(want.dtype) * scale;
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const double g = got[i], w = want[i];
    if (g == rounded[i] || (std::isnan(g) && std::isnan(w))) continue;
    const double allowed = limit * std::abs(w) + movement[i] + roundings;
    if (std::isfinite(g) && std::abs(g - w) <= allowed) continue;
    std::ostringstream text;
    text << "element " << i << ": got " << g << ", want " << w << ", off by " << g - w
         << ", allowed " << allowed << " (movement " << movement[i] << ", scale " << scale << ")";
    return text.str();
  }
  return "";
}

class InDouble : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { use_device(cpu_device()); }
};
class InDoubleOf : public InDouble, public ::testing::WithParamInterface<Name> {};

TEST_P(InDoubleOf, ValuesAndGradientsAreThoseOfTheMeaning) {
  const OpDef& op = op_named(GetParam());
  std::int64_t values = 0, gradients = 0;  // how many elements were compared
  for (const Sample& sample : samples_of(op)) {
    const auto in = make_inputs(sample, DType::F64, 7);
    SCOPED_TRACE(case_text(op, sample, in));
    std::vector<HostArray> seeds;
    const auto as_is = [](HostArray a, std::uint64_t) { return a; };
    const Results want = meaning(op, sample, in, as_is, seeds);
    const Results moved = movement(op, sample, in, want);
    double scale = 0;
    for (const HostArray& a : in) scale = std::max(scale, is_float(a.dtype) ? largest(a) : 0.0);
    scale = std::min(scale, 1e3);  // special values
    const Results got = eagerly(op, sample, in, seeds, want);
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, array] : want) {
      EXPECT_EQ(compare(got.at(name), array, moved.at(name), std::max(scale, largest(array)),
                        factor_of(sample)),
                "")
          << name;
      (name.starts_with("grad") ? gradients : values) += array.numel();
    }
  }
  EXPECT_GT(values, 0) << "no value was compared";
  EXPECT_EQ(gradients > 0, testing::has_slope(op)) << gradients << " gradients were compared";
}

// What f64 is for: the gradients of a network, eagerly and compiled, against central differences.
TEST_F(InDouble, GradientsOfANetworkAreThoseOfDifferences) {
  const auto values = [](const Shape& shape, std::uint64_t identity) {
    HostArray a = HostArray::zeros(DType::F64, shape.max_extents());
    return random_like(a, identity).doubles();
  };
  const std::vector<Shape> shapes = {{2, 2, 6, 6}, {4, 2, 3, 3}, {4}, {5, 36}};
  const auto loss_of = [](const std::vector<Tensor>& t) {
    const Tensor seen = conv2d(t[0], t[1], t[2], {.padding = {1, 1}});
    const Tensor pooled =
        avg_pool2d(max_pool2d(hard_sigmoid(seen), {.kernel = {2, 2}}), {.kernel = {1, 1}});
    const Tensor heads = reshape(pooled, {2, 9, 2, 2});
    const Tensor mixed = attention(heads, heads, heads);
    return cross_entropy(linear(flatten(mixed, 1), t[3]), cast(iota(2), DType::I32));
  };
  const auto with_gradients = [&](const std::vector<Tensor>& t) {
    const Tensor loss = loss_of(t);
    const std::vector<Tensor> g =
        loss.emitter()->gradients(loss, scalar_like(loss, 1), t, current_where());
    return std::vector<Tensor>{loss, g[0], g[1], g[2], g[3]};
  };
  std::vector<std::vector<double>> at;
  for (std::size_t i = 0; i < shapes.size(); ++i) at.push_back(values(shapes[i], i));
  const auto tensors = [&] {
    std::vector<Tensor> t;
    for (std::size_t i = 0; i < shapes.size(); ++i) t.push_back(from_doubles(at[i], shapes[i]));
    return t;
  };
  auto program = compile(
      [&](const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& head) {
        return with_gradients({x, w, b, head});
      },
      {.partial_batches = false});
  const std::vector<Tensor> eagerly = with_gradients(tensors());
  const std::vector<Tensor> in = tensors();
  const std::vector<Tensor> compiled = program(in[0], in[1], in[2], in[3]);
  for (std::size_t i = 0; i < eagerly.size(); ++i)
    EXPECT_EQ(eagerly[i].to_vector(), compiled[i].to_vector()) << i;
  constexpr double kStep = 1e-6;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::vector<double> gradient = eagerly[i + 1].to_vector();
    for (std::size_t e = 0; e < at[i].size(); e += 7) {
      const double here = at[i][e];
      at[i][e] = here + kStep;
      const double above = loss_of(tensors()).item();
      at[i][e] = here - kStep;
      const double below = loss_of(tensors()).item();
      at[i][e] = here;
      // A loss near 2 rounds to 2^-53 of it, and the difference is divided by 2e-6.
      EXPECT_NEAR(gradient[e], (above - below) / (2 * kStep), 1e-8) << i << " " << e;
    }
  }
}

std::vector<Name> all_ops() {
  std::vector<Name> names;
  for (const OpDef& op : op_table()) names.push_back(op.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, InDoubleOf, ::testing::ValuesIn(all_ops()),
                         [](const auto& info) { return info.param.str(); });

}  // namespace
}  // namespace aloft
