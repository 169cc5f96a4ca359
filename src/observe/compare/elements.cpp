#include "observe/compare/elements.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "observe/compare/noise.h"

namespace aloft::compare {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Infinities and NaN count where both tensors have the same ones, of the same sign; they are left
// out of the figures then. Nothing where they have others.
bool drop_infinities(std::vector<double>& n, std::vector<double>& b) {
  for (std::size_t i = 0; i < n.size(); ++i) {
    if (std::isfinite(n[i]) && std::isfinite(b[i])) continue;
    if (n[i] != b[i] && !(std::isnan(n[i]) && std::isnan(b[i]))) return false;
    n[i] = b[i] = 0;
  }
  return true;
}

// The elements of a matrix with its rows as columns.
std::vector<double> transposed(const std::vector<double>& v, std::int64_t rows,
                               std::int64_t columns) {
  std::vector<double> out(v.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      out[static_cast<std::size_t>(c * rows + r)] = v[static_cast<std::size_t>(r * columns + c)];
  return out;
}

bool is_transposed(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  return a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0] && a != b;
}

double rounded(double v) { return std::round(v * 1e12) / 1e12; }  // as msprobe prints them

// The distance of a number to the next of a type with this unit.
double step_at(double v, double unit) {
  if (v == 0) return 2 * unit * std::numeric_limits<float>::min();
  return 2 * unit * std::exp2(std::floor(std::log2(std::abs(v))));
}

}  // namespace

ElementFigures figures_of(const Elements& npu, const Elements& bench, bool may_be_turned) {
  ElementFigures f;
  std::vector<double> n = npu.values, b = bench.values;
  if (n.size() != b.size()) {
    f.problem = "shape unmatched";
    f.relative_distance = kInfinite;
    return f;
  }
  if (n.empty()) {
    f.problem = "None";
    return f;
  }
  if (may_be_turned && is_transposed(npu.shape, bench.shape))
    n = transposed(n, npu.shape[0], npu.shape[1]);
  if (!drop_infinities(n, b)) {
    f.problem = "Nan";
    f.relative_distance = kInfinite;
    return f;
  }
  const double unit = std::max(unit_of(npu.type), unit_of(bench.type));
  // msprobe divides in the wider of the two types, in f32 at least.
  const double epsilon = 4 *
                         std::min({0x1p-24, std::max(unit_of(npu.type), 0x1p-53),
                                   std::max(unit_of(bench.type), 0x1p-53)}) /
                         2;
  double dot = 0, nn = 0, bb = 0, dd = 0, worst = 0, relative = 0, ulps = 0, largest = 0;
  std::size_t within_1 = 0, within_5 = 0;
  std::vector<double> differences;
  differences.reserve(n.size());
  for (std::size_t i = 0; i < n.size(); ++i) {
    const double d = std::abs(n[i] - b[i]);
    const double r = d / (b[i] == 0 ? epsilon : std::abs(b[i]));
    differences.push_back(d);
    dot += n[i] * b[i], nn += n[i] * n[i], bb += b[i] * b[i], dd += d * d;
    worst = std::max(worst, d), relative = std::max(relative, r);
    largest = std::max(largest, std::abs(b[i]));
    if (unit > 0 && d > 0)
      ulps = std::max(ulps, d / step_at(std::max(std::abs(n[i]), std::abs(b[i])), unit));
    within_1 += r < 0.001, within_5 += r < 0.005;
  }
  const double count = static_cast<double>(n.size());
  f.max_absolute = rounded(worst), f.max_relative = rounded(relative);
  if (unit > 0) f.max_ulps = ulps;
  f.relative_distance = dd == 0 ? 0 : bb > 0 ? std::sqrt(dd / bb) : std::sqrt(dd / nn);
  f.relative_worst = worst == 0 ? 0 : largest > 0 ? worst / largest : 1;
  const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  f.relative_typical = *middle == 0 ? 0 : bb > 0 ? *middle / std::sqrt(bb / count) : 1;
  f.difference = std::sqrt(dd), f.length = std::sqrt(bb);
  f.largest_difference = worst, f.largest = largest;
  if (bench.shape.empty() || npu.shape.empty()) return f;
  f.distance = std::sqrt(dd);
  f.thousandth = rounded(static_cast<double>(within_1) / count);
  f.five_thousandths = rounded(static_cast<double>(within_5) / count);
  if (n.size() < 2) return f;
  constexpr double kNothing = 0x1p-52;
  if (std::sqrt(nn) <= kNothing && std::sqrt(bb) <= kNothing)
    f.cosine = 1;
  else if (std::sqrt(nn) > kNothing && std::sqrt(bb) > kNothing)
    f.cosine = rounded(dot / (std::sqrt(nn) * std::sqrt(bb)));
  else
    f.problem = "Nan";
  if (f.cosine && *f.cosine > 0.9999) f.cosine = std::round(*f.cosine * 1e6) / 1e6;
  return f;
}

}  // namespace aloft::compare
