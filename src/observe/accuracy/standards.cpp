#include "observe/accuracy/standards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "observe/accuracy/near_elements.h"
#include "scalar/float_formats.h"
#include "types/float_step.h"
#include "types/statistics.h"

namespace aloft::accuracy {

namespace {

// msprobe's, by type: the part of an element's size that it may be off, and how small elements may
// be, beside the others, before that is measured by these.
struct TypeLimits {
  double relative = 0, small = 0, ulp_limit = 0;
};

TypeLimits limits_of(DType t) {
  switch (t) {
    case DType::BF16:
      return {0x1p-8, 0x1p-10, 1};
    case DType::F16:
      return {0x1p-10, 0x1p-10, 1};
    case DType::F64:
      return {0x1p-40, 0x1p-40, 32};
    default:
      return {0x1p-20, 0x1p-20, 32};
  }
}

// Where products are made of values that the call itself keeps in f16, each of these may be off by
// the rounding of the smallest numbers: of a sum of 256 of them, at random, by 16 times that.
constexpr double kInnerRoundings = 16;
// What products of two bf16 planes leave out of f32.
constexpr double kPlanes = 0x1p-16;

double rounded(DType t, double v) {
  switch (t) {
    case DType::BF16:
      return scalar::f64_of(scalar::bf16_of(v));
    case DType::F16:
      return scalar::f64_of(scalar::f16_of(v));
    case DType::F32:
      return static_cast<float>(v);
    default:
      return v;
  }
}

// An infinity is right where the meaning is one of the same sign, or as near to the type's end as
// rounding reaches; and so is the end where the meaning is beyond it.
bool agrees(DType t, double result, double meaning) {
  if (std::isnan(result) || std::isnan(meaning)) return std::isnan(result) && std::isnan(meaning);
  const double end = edges_of(t).largest * (1 - 2 * limits_of(t).relative);
  return std::signbit(result) == std::signbit(meaning) && std::abs(result) >= end &&
         std::abs(meaning) >= end;
}

struct Errors {
  double rmse = 0, worst_relative = 0, mean_relative = 0;
};

double root_mean_square(std::span<const double> values) {
  double sum = 0;
  std::size_t n = 0;
  for (const double v : values)
    if (std::isfinite(v)) sum += v * v, ++n;
  return n > 0 ? std::sqrt(sum / static_cast<double>(n)) : 0;
}

// `least`: the size by which smaller elements are measured.
Errors errors_of(std::span<const double> result, std::span<const double> meaning, double least) {
  Errors e;
  std::size_t n = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!std::isfinite(result[i]) || !std::isfinite(meaning[i])) continue;
    const double off = std::abs(result[i] - meaning[i]);
    const double size = std::max(std::abs(meaning[i]), least);
    e.rmse += off * off;
    if (size > 0) {
      e.mean_relative += off / size;
      e.worst_relative = std::max(e.worst_relative, off / size);
    }
    ++n;
  }
  if (n == 0) return e;
  e.rmse = std::sqrt(e.rmse / static_cast<double>(n));
  e.mean_relative /= static_cast<double>(n);
  return e;
}

class Judging {
 public:
  Judging(Standard standard, const Compared& c)
      : c_(c), limits_(limits_of(c.type)), rms_(root_mean_square(c.meaning)) {
    a_.standard = standard;
    a_.elements = c.result.size();
  }

  Accuracy judge() {
    measure();
    if (!is_float(c_.type) && a_.standard != Standard::Binary) {
      // Rounded from floats: the nearest, or the one beside it.
      if (a_.max_absolute > 1) fail("largest error", a_.max_absolute, 1);
    } else if (a_.standard == Standard::Absolute) {
      judge_absolute();
    } else if (a_.standard == Standard::Ulp) {
      judge_ulps();
      judge_sums();  // of the two, the share says more
    } else if (a_.standard == Standard::Benchmark) {
      judge_beside_benchmark();
    }
    return std::move(a_);
  }

 private:
  void fail(std::string_view figure, double value, double limit) {
    if (!a_.is_passed) return;
    a_.is_passed = false;
    a_.why = fmt::format("{} is {:.3g}, and may be {:.3g}", figure, value, limit);
  }

  void worst_at(std::size_t i) {
    a_.worst = i;
    a_.worst_result = c_.result[i];
    a_.worst_meaning = c_.meaning[i];
  }

  void fail_at(std::size_t i, std::string why) {
    if (!a_.is_passed) return;
    a_.is_passed = false;
    a_.why = std::move(why);
    worst_at(i);
    is_worst_known_ = true;
  }

  void measure() {
    std::size_t over = 0, finite = 0;
    double worst = -1;
    const double least = limits_.small * rms_;
    for (std::size_t i = 0; i < c_.result.size(); ++i) {
      const double r = c_.result[i], m = c_.meaning[i];
      if (a_.standard == Standard::Binary) look_for_other(i, r, rounded(c_.type, m));
      if (!std::isfinite(r) || !std::isfinite(rounded(c_.type, m))) {
        if (!agrees(c_.type, r, m))
          fail_at(i, fmt::format("an element is {}, and means {:.6g}", r, m));
        continue;
      }
      ++finite;
      const double off = std::abs(r - m), size = std::max(std::abs(m), least);
      const double ulps = is_float(c_.type) ? off / step_at(c_.type, m) : off;
      a_.max_absolute = std::max(a_.max_absolute, off);
      a_.max_relative = std::max(a_.max_relative, size > 0 ? off / size : off);
      a_.mean_relative += size > 0 ? off / size : off;
      a_.rmse += off * off;
      a_.mean_ulp += ulps;
      a_.max_ulp = std::max(a_.max_ulp, ulps);
      over += is_float(c_.type) ? off > limits_.ulp_limit * step_at(c_.type, m) + usual_loss(i)
                                : ulps > limits_.ulp_limit;
      if (off > worst && !is_worst_known_) worst = off, worst_at(i);
    }
    const auto n = static_cast<double>(std::max<std::size_t>(finite, 1));
    a_.mean_relative /= n;
    a_.rmse = std::sqrt(a_.rmse / n);
    a_.mean_ulp /= n;
    a_.share_over_limit = static_cast<double>(over) / n;
  }

  void look_for_other(std::size_t i, double r, double m) {
    if (r == m || (std::isnan(r) && std::isnan(m))) return;
    const int digits = is_float(c_.type) && c_.type != DType::F64 ? 9 : 17;
    fail_at(i, fmt::format("an element is {:.{}g}, and must be {:.{}g}", r, digits, m, digits));
  }

  // What rounding takes from the smallest numbers, however small they are: half the step between
  // those of the type; and what is below the normal numbers of the type in which kernels compute
  // may be 0, which is more than that but where a type is much narrower, as float16 is.
  double least_rounding() const {
    const DType computed = c_.type == DType::F64 ? DType::F64 : DType::F32;
    return std::max(step_at(c_.type, 0) / 2, edges_of(computed).least_normal);
  }

  void judge_absolute() {
    const double least = limits_.small * limits_.relative * rms_ + least_rounding();
    for (std::size_t i = 0; i < c_.result.size(); ++i) {
      const double off = std::abs(c_.result[i] - c_.meaning[i]);
      const double apart = c_.apart.empty() ? 0 : c_.apart[i];
      if (!std::isfinite(off) || off <= limits_.relative * std::abs(c_.meaning[i]) + least + apart)
        continue;
      fail_at(i,
              fmt::format("an element is {:.9g}, and means {:.9g}", c_.result[i], c_.meaning[i]));
    }
  }

  // What a sum may lose in whatever order: half a unit of the type that it is made in, for each
  // term, of all magnitudes together (doubled for what is of second order); of f32 what products
  // of two bf16 planes leave out; and the rounding of the result. A share of elements says nothing
  // of how far a single one is off.
  void judge_sums() {
    const double term = c_.type == DType::F64 ? 0x1p-52 : 0x1p-23;
    const double planes = c_.type == DType::F64 ? 0 : kPlanes;
    const double part = static_cast<double>(c_.terms) * term + planes;
    for (std::size_t i = 0; i < c_.summed.size(); ++i) {
      const double off = std::abs(c_.result[i] - c_.meaning[i]);
      const double most =
          part * c_.summed[i] + limits_.relative * std::abs(c_.meaning[i]) + least_rounding();
      if (!std::isfinite(off) || !(off > most)) continue;
      fail_at(i,
              fmt::format("an element is {:.9g}, and means {:.9g}: a sum of {} {} may lose {:.3g}",
                          c_.result[i], c_.meaning[i], c_.terms,
                          a_.standard == Standard::Ulp ? "products" : "terms", most));
    }
  }

  // What a sum that cancels usually loses, where its terms are rounded in either direction: beside
  // that the units of what is left say nothing. Of f32 with what products of two planes leave out.
  double usual_loss(std::size_t i) const {
    if (i >= c_.summed.size()) return 0;
    const double root = std::sqrt(static_cast<double>(c_.terms));
    const double planes = c_.type == DType::F32 ? kPlanes : 0;
    return (root * (c_.type == DType::F64 ? 0x1p-53 : 0x1p-24) + planes) * c_.summed[i];
  }

  void judge_ulps() {
    const bool is_wide = limits_.ulp_limit > 1;
    const double share = is_wide ? 0.05 : 0.001;
    if (is_wide && a_.mean_ulp < 64) return;
    if (a_.share_over_limit >= share && a_.share_over_limit > 0)
      fail(fmt::format("the share of elements more than {:g} ulp off", limits_.ulp_limit),
           a_.share_over_limit, share);
  }

  void judge_beside_benchmark() {
    // Where summands cancel, elements are off by a part of what they are sums of: those below the
    // others' size are measured by that.
    const double u = std::max(limits_.relative, limits_of(c_.inner).relative);
    const Errors own = errors_of(c_.result, c_.meaning, rms_),
                 other = errors_of(c_.benchmark, c_.meaning, rms_);
    const auto ratio = [&](double mine, double theirs, double floor) {
      const double beside = std::max(theirs, floor);
      return mine == 0 ? 0 : beside > 0 ? mine / beside : INFINITY;
    };
    const double least = least_rounding() * (c_.inner == DType::F16 ? kInnerRoundings : 1);
    a_.rmse_ratio = ratio(own.rmse, other.rmse, u * rms_ / 2 + least);
    a_.mean_ratio =
        ratio(own.mean_relative, other.mean_relative, u + (rms_ > 0 ? least / rms_ : 0));
    if (a_.rmse_ratio > 2) fail("RMSE beside the benchmark's", a_.rmse_ratio, 2);
    judge_elements(std::max(other.worst_relative, u / 2), u / 2, least);
    judge_sums();
    if (a_.mean_ratio > 2) fail("the mean relative error beside the benchmark's", a_.mean_ratio, 2);
  }

  // An element by its own size, or that of the others where it is smaller: by the largest of all a
  // small one could be anything. In low types, in which the least that rounding takes is much, the
  // others are those near to it, and so is what the benchmark loses: `least_part` of their size, or
  // what it loses there and at the element itself. Elements that all mean nothing, or next to it,
  // are what is left where the others' magnitudes cancel, as the gradient of a query that sees one
  // key: a part of these.
  void judge_elements(double part, double least_part, double least) {
    const bool is_low = limits_.ulp_limit == 1 && !c_.shape.empty();
    std::vector<double> lost;
    if (is_low)
      for (std::size_t i = 0; i < c_.meaning.size(); ++i)
        lost.push_back(c_.benchmark[i] - c_.meaning[i]);
    const std::span<const std::int64_t> shape = is_low ? c_.shape : std::span<const std::int64_t>();
    const NearElements sizes(c_.meaning, shape), losses(lost, shape);
    const double cancelled = 2 * least_part * rms_;
    std::size_t at = 0;
    for (std::size_t i = 0; i < c_.result.size(); ++i) {
      const double off = std::abs(c_.result[i] - c_.meaning[i]), own = std::abs(c_.meaning[i]);
      double may = part * std::max(own, rms_);
      if (is_low && std::isfinite(lost[i]))
        may = std::min(may, std::max({least_part * std::max({own, sizes.size_at(i), cancelled}),
                                      losses.size_at(i), std::abs(lost[i])}));
      may += least;
      if (std::isfinite(off) && off / may > a_.max_ratio) a_.max_ratio = off / may, at = i;
    }
    if (a_.max_ratio <= 10) return;
    fail_at(at, fmt::format("an element is {:.9g}, and means {:.9g}: its error beside the "
                            "benchmark's is {:.3g}, and may be 10",
                            c_.result[at], c_.meaning[at], a_.max_ratio));
  }

  const Compared& c_;
  TypeLimits limits_;
  double rms_;
  Accuracy a_;
  bool is_worst_known_ = false;
};

}  // namespace

std::string_view name_of(Standard standard) {
  constexpr std::string_view names[] = {"binary", "absolute", "ulp", "benchmark"};
  return names[static_cast<int>(standard)];
}

Accuracy accuracy_of(Standard standard, const Compared& c) { return Judging(standard, c).judge(); }

}  // namespace aloft::accuracy
