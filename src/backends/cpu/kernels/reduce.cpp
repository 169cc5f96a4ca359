// Reductions over axes (the rows of ops/reduce.cpp).
#include "ops/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/reduce.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>

#include "backends/cpu/integers.h"
#include "backends/cpu/rows/axis_view.h"
#include "backends/cpu/rows/integer_reduction.h"
#include "backends/cpu/rows/reduction.h"
#include "backends/cpu/vectors/term_functions-inl.h"
#include "scalar/integers.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// Folds n elements with four independent accumulators, then the accumulators, then the lanes.
template <class Step, class Lanes>
HWY_INLINE float fold_row(const float* x, std::int64_t n, float start, const Step& step,
                          const Lanes& across) {
  const Floats d;
  const auto w = static_cast<std::int64_t>(hn::Lanes(d));
  FloatV a = hn::Set(d, start), b = a, c = a, e = a;
  std::int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w) {
    a = step(a, load(d, x + i));
    b = step(b, load(d, x + i + w));
    c = step(c, load(d, x + i + 2 * w));
    e = step(e, load(d, x + i + 3 * w));
  }
  for (; i + w <= n; i += w) a = step(a, load(d, x + i));
  if (i < n) b = step(b, load_n(d, x + i, n - i, start));
  return across(step(step(a, b), step(c, e)));
}

double sum_row(const float* x, std::int64_t n) {
  return fold_row(
      x, n, 0.0f, [](FloatV a, FloatV b) HWY_ATTR { return hn::Add(a, b); },
      [](FloatV v) HWY_ATTR { return hn::GetLane(hn::SumOfLanes(Floats(), v)); });
}
// NaN is looked for apart: the lanes' maximum would lose it.
double max_row(const float* x, std::int64_t n) {
  return fold_row(
      x, n, -std::numeric_limits<float>::infinity(),
      [](FloatV a, FloatV b) HWY_ATTR { return maximum_of(a, b); },
      [](FloatV v) HWY_ATTR {
        const Floats d;
        if (!hn::AllFalse(d, hn::IsNaN(v))) return std::numeric_limits<float>::quiet_NaN();
        return hn::GetLane(hn::MaxOfLanes(d, v));
      });
}
double min_row(const float* x, std::int64_t n) {
  return fold_row(
      x, n, std::numeric_limits<float>::infinity(),
      [](FloatV a, FloatV b) HWY_ATTR { return minimum_of(a, b); },
      [](FloatV v) HWY_ATTR {
        const Floats d;
        if (!hn::AllFalse(d, hn::IsNaN(v))) return std::numeric_limits<float>::quiet_NaN();
        return hn::GetLane(hn::MinOfLanes(d, v));
      });
}

template <class Step>
HWY_INLINE void fold_into(float* into, const float* x, std::int64_t n, const Step& step) {
  const Floats d;
  const auto w = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + w <= n; i += w) store(d, step(load(d, into + i), load(d, x + i)), into + i);
  if (i < n) store_n(d, step(load_n(d, into + i, n - i), load_n(d, x + i, n - i)), into + i, n - i);
}
void sum_rows(float* into, const float* x, std::int64_t n) {
  fold_into(into, x, n, [](FloatV a, FloatV b) HWY_ATTR { return hn::Add(a, b); });
}
void max_rows(float* into, const float* x, std::int64_t n) {
  fold_into(into, x, n, [](FloatV a, FloatV b) HWY_ATTR { return maximum_of(a, b); });
}
void min_rows(float* into, const float* x, std::int64_t n) {
  fold_into(into, x, n, [](FloatV a, FloatV b) HWY_ATTR { return minimum_of(a, b); });
}

Fold<float> sum_fold() { return {sum_row, sum_rows}; }
Fold<float> max_fold() { return {max_row, max_rows}; }
Fold<float> min_fold() { return {min_row, min_rows}; }

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>
#include <cstdint>

namespace aloft::cpu {
namespace {

HWY_EXPORT(sum_fold);
HWY_EXPORT(max_fold);
HWY_EXPORT(min_fold);

double add(double a, double b) { return a + b; }
double multiply(double a, double b) { return a * b; }
double larger(double a, double b) { return std::isnan(a) || a >= b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a <= b ? a : b; }
double either(double a, double b) { return a != 0 || b != 0; }
double both(double a, double b) { return a != 0 && b != 0; }

// A fold in plain loops, for double and for the rarer reductions.
template <class T, double (*kStep)(double, double)>
constexpr Fold<T> plain() {
  return {[](const T* x, std::int64_t n) {
            double value = static_cast<double>(x[0]);
            if constexpr (kStep == either || kStep == both) value = value != 0;
            for (std::int64_t i = 1; i < n; ++i) value = kStep(value, static_cast<double>(x[i]));
            return value;
          },
          [](T* into, const T* x, std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i)
              into[i] =
                  static_cast<T>(kStep(static_cast<double>(into[i]), static_cast<double>(x[i])));
          }};
}

double as_it_is(double value, double) { return value; }
double over_count(double value, double count) { return value / count; }

constexpr double kInf = std::numeric_limits<double>::infinity();

ReductionCode code_of(const std::string& op) {
  const auto sum = HWY_DYNAMIC_DISPATCH(sum_fold)();
  if (op == "sum") return {sum, plain<double, add>(), add, 0, as_it_is};
  if (op == "mean") return {sum, plain<double, add>(), add, 0, over_count};
  if (op == "max")
    return {HWY_DYNAMIC_DISPATCH(max_fold)(), plain<double, larger>(), larger, -kInf, as_it_is};
  if (op == "min")
    return {HWY_DYNAMIC_DISPATCH(min_fold)(), plain<double, smaller>(), smaller, kInf, as_it_is};
  if (op == "prod") return {{}, plain<double, multiply>(), multiply, 1, as_it_is};
  if (op == "any") return {plain<float, either>(), plain<double, either>(), either, 0, as_it_is};
  return {plain<float, both>(), plain<double, both>(), both, 1, as_it_is};
}

// The same of integers.
template <std::int64_t (*kStep)(std::int64_t, std::int64_t)>
void fold_integers(std::int64_t* into, const std::int64_t* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) into[i] = kStep(into[i], x[i]);
}
constexpr std::int64_t larger_integer(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
constexpr std::int64_t smaller_integer(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

std::unique_ptr<Prepared> prepare_integers(const CallSpec& call, const Ints& axes) {
  const DType t = call.in[0].dtype;
  const Name op = call.op;
  if (op == Name("sum"))
    return prepare_integer_reduction(call, axes, fold_integers<scalar::wrapping_add>, 0);
  if (op == Name("prod"))
    return prepare_integer_reduction(call, axes, fold_integers<scalar::wrapping_mul>, 1);
  if (op == Name("max"))
    return prepare_integer_reduction(call, axes, fold_integers<larger_integer>, least_of(t));
  return prepare_integer_reduction(call, axes, fold_integers<smaller_integer>, most_of(t));
}

std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  const Ints axes = from_attrs<ReduceAttrs>(call.attrs).axes;
  if (is_integer(call.in[0].dtype) && call.out[0].dtype == call.in[0].dtype)
    return prepare_integers(call, axes);
  return prepare_reduction(call, axes, code_of(call.op.str()));
}

}  // namespace

std::vector<Kernel> reduce_kernels() {
  return {{"cpu.sum", "sum", at_most_max_axes, prepare},
          {"cpu.mean", "mean", at_most_max_axes, prepare},
          {"cpu.max", "max", at_most_max_axes, prepare},
          {"cpu.min", "min", at_most_max_axes, prepare},
          {"cpu.prod", "prod", at_most_max_axes, prepare},
          {"cpu.any", "any", at_most_max_axes, prepare},
          {"cpu.all", "all", at_most_max_axes, prepare}};
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
