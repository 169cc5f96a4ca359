#include "ops/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/host_statistics.h"
#include "ops/op.h"
#include "scalar/scaled_norm.h"

namespace aloft {
namespace {

using A = StatisticsAttrs;

void infer(const A& a, Infer& c) {
  c.need_count(1);
  c.need_float(0);
  const std::size_t numbers = TensorStatistics::kNumbers + (a.exponents ? kExponents : 0);
  c.out(DType::F64, {static_cast<std::int64_t>(numbers)});
}

std::int64_t exponent_of(double x) {
  if (std::isnan(x) || std::isinf(x)) return kExponents - 1;
  if (x == 0) return 0;
  return std::clamp<std::int64_t>(std::ilogb(x) + 127, 0, kExponents - 1);
}

void evaluate(const A& a, EvalCall& c) {
  double numbers[TensorStatistics::kNumbers];
  statistics_in_double(c.in[0], a.masked).put(numbers);
  for (std::size_t i = 0; i < TensorStatistics::kNumbers; ++i)
    c.out[0][static_cast<std::int64_t>(i)] = numbers[i];
  if (!a.exponents) return;
  for (const double v : c.in[0].values)
    c.out[0][static_cast<std::int64_t>(TensorStatistics::kNumbers) + exponent_of(v)] += 1;
}

void samples(Samples& s) {
  // Kernels begin the sums of low types in f32: of as many elements as here, that is within this
  // factor. tests/backends/cpu/statistics_test.cpp has the bound, and the other types.
  constexpr double kInF32 = 0x1p16;
  const auto add = [&](bool exponents, const Shape& shape, Fill fill, double scale,
                       const char* note, bool masked = false) {
    Sample& sample = s.add(A{exponents, masked}, {{shape, fill, -1, 1, scale}}, note);
    sample.gradient = false;
    sample.tolerance = kInF32;
  };
  for (const Shape& shape : {Shape{3, 17}, Shape{0, 4}, Shape{1}, Shape{}, Shape{2, 4097}})
    add(false, shape, Fill::Normal, 1, "");
  add(false, {9, 4097}, Fill::Normal, 3, "more than one piece");
  add(true, {3, 17}, Fill::Normal, 1, "exponents");
  add(true, {9, 4097}, Fill::Normal, 1e-6, "exponents, numbers that are subnormal in f16");
  for (const bool exponents : {false, true})
    add(exponents, {8, 257}, Fill::Special, 1, "special values");
  add(false, {8, 257}, Fill::Special, 1, "masked", true);
  add(true, {9, 4097}, Fill::Normal, 1, "masked, and nothing is", true);
  s.add(A{true}, {{{33}, Fill::Constant, 65504}}, "of f16 the largest").gradient = false;
  s.add(A{true}, {{{1300}, Fill::Constant, 0}}, "zeros").gradient = false;
  for (const double x : {1e200, 1e308, 1e-200})  // of f64; of one of them the sum is none, either
    s.add(A{}, {{{33}, Fill::Constant, x}}, "squares that are no doubles").gradient = false;
}

OpDef statistics_op() {
  return define<A>({
      .name = "statistics",
      .doc = "Of all elements: max, min, mean, L2 norm, how many there are, and how many are NaN, "
             "inf, -inf, zero, subnormal, of the largest finite magnitude; then, if asked for, how "
             "many have each exponent. What a mask hides is only counted, if that is asked for.",
      .infer = infer,
      .numeric = Numeric::Exact,
      .meaning = Eval<A>(evaluate),
      .vjp = NoGradient{},
      .cost =
          [](const A&, CallTypes in, CallTypes out) {
            Cost cost = elementwise_cost(0, in, out);
            cost.flops = 3.0 * static_cast<double>(in[0].shape.max_numel());
            return cost;
          },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
  });
}

}  // namespace

TensorStatistics statistics_in_double(const HostArray& x, bool masked) {
  const FloatEdges edges = edges_of(x.dtype);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  TensorStatistics s;
  s.elements = static_cast<double>(x.numel());
  s.max = -std::numeric_limits<double>::infinity();
  s.min = std::numeric_limits<double>::infinity();
  double sum = 0, squares = 0;
  double seen = 0;
  for (const double v : x.values) {
    if (masked && std::isinf(v) && v < 0) {
      ++s.negative_inf;
      continue;
    }
    ++seen;
    sum += v;
    squares += v * v;
    s.max = std::max(s.max, v);
    s.min = std::min(s.min, v);
    s.nan += std::isnan(v);
    s.positive_inf += std::isinf(v) && v > 0;
    s.negative_inf += std::isinf(v) && v < 0;
    s.zeros += v == 0;
    s.underflowed += v != 0 && std::abs(v) < edges.least_normal;
    s.saturated += std::abs(v) == edges.largest;
  }
  if (s.nan > 0 || seen == 0) s.max = s.min = kNan;
  s.mean = sum / seen;
  s.norm = std::sqrt(squares);
  const double largest = std::max(std::abs(s.max), std::abs(s.min));
  if (x.dtype != DType::F64 || seen == 0 || !std::isfinite(largest)) return s;
  const std::vector<double> values(x.values.begin(), x.values.end());
  if (scalar::needs_scaling(s.norm, largest)) s.norm = scalar::scaled_norm(values, largest);
  if (!std::isfinite(sum)) s.mean = scalar::scaled_mean(values, seen);
  return s;
}

std::vector<OpDef> statistics_ops() { return {statistics_op()}; }

Tensor statistics(Operand x, bool exponents, bool masked) {
  return emit_one("statistics", to_attrs(StatisticsAttrs{exponents, masked}), {x});
}

}  // namespace aloft
