#include "observe/compare/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "observe/compare/noise.h"
#include "types/float_step.h"

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

// What masks hold: where both stand at the low end of their types, or one is -inf there, nothing
// differs but the types. At the other end a number that is too large beside one that is not is
// another one.
void drop_ends(std::vector<double>& n, std::vector<double>& b, const Elements& npu,
               const Elements& bench) {
  for (std::size_t i = 0; i < n.size(); ++i)
    if (n[i] < 0 && b[i] < 0 && is_at_end(n[i], npu.type) && is_at_end(b[i], bench.type))
      n[i] = b[i] = 0;
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

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  return largest;
}

// The power of two that brings numbers of that size near 1 where a double might not hold their
// squares; else 1.
double scale_of(double largest) {
  constexpr int kFar = 300;  // of an exponent
  if (!(largest > 0) || !std::isfinite(largest)) return 1;
  const int exponent = std::ilogb(largest);
  return std::abs(exponent) < kFar ? 1 : std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
}

// The square of the distance of two tensors; infinite where one alone is not finite.
double distance_of(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double d = a[i] - b[i];
    if (!std::isfinite(d)) return kInfinite;
    sum += d * d;
  }
  return sum;
}

// Whether a square matrix lies otherwise in the other run: it is much nearer to that, turned. One
// that is off in its own layout is as far from the other layout as from any matrix.
bool is_nearer_turned(const Elements& npu, const Elements& bench) {
  constexpr double kMuchNearer = 0.25;  // of the squares of distances
  const auto& shape = npu.shape;
  if (shape.size() != 2 || shape[0] != shape[1] || shape != bench.shape || shape[0] < 2)
    return false;
  const double as_it_lies = distance_of(npu.values, bench.values);
  if (as_it_lies == 0) return false;
  const double turned = distance_of(transposed(npu.values, shape[0], shape[1]), bench.values);
  return std::isfinite(turned) && turned <= kMuchNearer * as_it_lies;
}

// The first of two axes that lie side by side and are exchanged in the other tensor, such as heads
// and positions, or positions and batch; nothing where the shapes are not the same but for that.
std::optional<std::size_t> exchanged_axes(const std::vector<std::int64_t>& a,
                                          const std::vector<std::int64_t>& b) {
  if (a.size() != b.size() || a.size() < 3 || a == b) return std::nullopt;
  const auto first = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  std::vector<std::int64_t> exchanged = a;
  if (first + 1 < a.size()) std::swap(exchanged[first], exchanged[first + 1]);
  return exchanged == b ? std::optional(first) : std::nullopt;
}

// The elements with an axis and the next exchanged.
std::vector<double> with_exchanged(const std::vector<double>& v,
                                   const std::vector<std::int64_t>& shape, std::size_t axis) {
  const auto rows = static_cast<std::size_t>(shape[axis]);
  const auto columns = static_cast<std::size_t>(shape[axis + 1]);
  std::size_t inner = 1;
  for (std::size_t i = axis + 2; i < shape.size(); ++i) inner *= static_cast<std::size_t>(shape[i]);
  std::vector<double> out(v.size());
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::size_t in = i % inner, column = i / inner % columns,
                      row = i / (inner * columns) % rows, outer = i / (inner * columns * rows);
    out[((outer * columns + column) * rows + row) * inner + in] = v[i];
  }
  return out;
}

// As msprobe prints them; of numbers that large nothing is behind the point.
double rounded(double v) { return std::abs(v) < 0x1p53 ? std::round(v * 1e12) / 1e12 : v; }

// The coarser of two types; nothing where neither is one of floats.
std::optional<DType> coarser_of(const Elements& a, const Elements& b) {
  const bool is_first = unit_of(a.type) >= unit_of(b.type);
  return float_type_of(is_first ? a.type : b.type);
}

// Of tensors whose elements stand in the same order: how far they are apart, for our own judgement.
// `rests`: what is to be added to their differences; empty: nothing.
void measure_distance(ElementFigures& f, const std::vector<double>& n, const std::vector<double>& b,
                      const std::vector<double>& rests) {
  double nn = 0, bb = 0, dd = 0, worst = 0, largest = 0;
  const double scale = scale_of(std::max(largest_of(n), largest_of(b)));
  std::vector<double> differences;
  differences.reserve(n.size());
  for (std::size_t i = 0; i < n.size(); ++i) {
    const double ours = n[i] * scale, theirs = b[i] * scale;
    const double d = std::abs(ours - theirs + (rests.empty() ? 0 : rests[i] * scale));
    differences.push_back(d);
    nn += ours * ours, bb += theirs * theirs, dd += d * d;
    worst = std::max(worst, d), largest = std::max(largest, std::abs(theirs));
  }
  f.relative_distance = dd == 0 ? 0 : bb > 0 ? std::sqrt(dd / bb) : std::sqrt(dd / nn);
  f.relative_worst = worst == 0 ? 0 : largest > 0 ? worst / largest : 1;
  const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  const double typical = std::sqrt(bb / static_cast<double>(n.size()));
  f.relative_typical = *middle == 0 ? 0 : bb > 0 ? *middle / typical : 1;
  f.difference = std::sqrt(dd) / scale, f.length = std::sqrt(bb) / scale;
  f.largest_difference = worst / scale, f.largest = largest / scale;
}

// Those of the one less those of the other; empty where neither has any.
std::vector<double> less(std::vector<double> a, const std::vector<double>& b) {
  if (b.empty()) return a;
  a.resize(b.size(), 0);
  for (std::size_t i = 0; i < b.size(); ++i) a[i] -= b[i];
  return a;
}

// |n - b| / |b| in the wider of the two types, in f32 at least, as msprobe computes it. Where b is
// 0 msprobe adds to both what a type's rounding is beside 1, which says nothing of them.
double relative_error(double n, double b, bool is_in_f32) {
  if (b == 0) return n == 0 ? 0 : kInfinite;
  if (!is_in_f32) return std::abs((n - b) / b);
  const auto ours = static_cast<float>(n), theirs = static_cast<float>(b);
  return std::abs((ours - theirs) / theirs);
}

// An error in float32 is held against a limit of that type: 0.005 lies above the float nearest to
// it.
bool is_within(double error, double limit, bool is_in_f32) {
  return is_in_f32 ? static_cast<float>(error) < static_cast<float>(limit) : error < limit;
}

// "[0, 3]" of an element of a tensor.
std::string place_of(std::size_t element, const std::vector<std::int64_t>& shape) {
  std::string text;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto extent = static_cast<std::size_t>(shape[axis]);
    text = std::to_string(element % extent) + (text.empty() ? "" : ", ") + text;
    element /= extent;
  }
  return "[" + text + "]";
}

// A whole number of 64 bits, of which a double has all but `rest`.
std::string whole_text(double value, double rest) {
  // 2^63 is the double nearest to the largest of them, and none itself.
  const std::uint64_t near = value >= 0x1p63
                                 ? std::uint64_t{1} << 63
                                 : static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  const auto beyond = static_cast<std::uint64_t>(static_cast<std::int64_t>(rest));
  return std::to_string(static_cast<std::int64_t>(near + beyond));
}

// The elements of two tensors, in the order of the second.
struct SideBySide {
  const std::vector<double>&n, &b;
  const std::vector<double>&n_rests, &b_rests;  // of whole numbers; empty: none
  std::string_view n_type, b_type;

  bool is_whole() const { return !float_type_of(n_type) && !float_type_of(b_type); }
  // Whether no distance says how far the two are apart: one alone is not finite, or both are and
  // not the same; or whole numbers are not the same.
  bool is_other(std::size_t i) const {
    if (is_whole()) return n[i] != b[i] || rest(n_rests, i) != rest(b_rests, i);
    const bool is_same = n[i] == b[i] || (std::isnan(n[i]) && std::isnan(b[i]));
    return !is_same && !(std::isfinite(n[i]) && std::isfinite(b[i]));
  }
  std::string text(std::size_t i) const {
    const auto of = [i](const std::vector<double>& values, const std::vector<double>& rests,
                        std::string_view type) {
      return float_type_of(type) ? number_text(values[i], type)
                                 : whole_text(values[i], rest(rests, i));
    };
    return of(n, n_rests, n_type) + " against " + of(b, b_rests, b_type);
  }

 private:
  static double rest(const std::vector<double>& rests, std::size_t i) {
    return rests.empty() ? 0 : rests[i];
  }
};

// The first element that is other, and how many more there are; "" of none.
std::string seen_in(const SideBySide& both, const std::vector<std::int64_t>& shape) {
  std::size_t first = 0, count = 0;
  for (std::size_t i = 0; i < both.n.size(); ++i)
    if (both.is_other(i) && count++ == 0) first = i;
  if (count == 0) return "";
  return fmt::format("{} at {}", both.text(first), place_of(first, shape)) +
         (count > 1 ? fmt::format(", and {} more such", count - 1) : "");
}

}  // namespace

double rest_of(std::int64_t value) {
  const auto nearest = static_cast<double>(value);
  if (nearest == 0x1p63)  // which no number of 64 bits with a sign is
    return -static_cast<double>((std::uint64_t{1} << 63) - static_cast<std::uint64_t>(value));
  return static_cast<double>(value - static_cast<std::int64_t>(nearest));
}

ElementFigures figures_of(const Elements& npu, const Elements& bench, bool may_be_turned) {
  ElementFigures f;
  std::vector<double> n = npu.values, b = bench.values;
  if (n.size() != b.size()) {
    f.problem = "shape unmatched";
    f.relative_distance = kInfinite;
    return f;
  }
  if (n.empty()) {
    f.problem = "unsupported";
    return f;
  }
  f.is_turned = may_be_turned && is_nearer_turned(npu, bench);
  const bool is_other_way = f.is_turned || (may_be_turned && is_transposed(npu.shape, bench.shape));
  const auto axis = exchanged_axes(npu.shape, bench.shape);
  const auto laid_as_bench = [&](std::vector<double> v) {
    if (!v.empty() && is_other_way) v = transposed(v, npu.shape[0], npu.shape[1]);
    if (!v.empty() && axis) v = with_exchanged(v, npu.shape, *axis);
    return v;
  };
  n = laid_as_bench(std::move(n));
  const std::vector<double> npu_rests = laid_as_bench(npu.rests);
  const std::vector<double> rests = less(npu_rests, bench.rests);
  std::vector<double> own_n = n, own_b = b;
  drop_ends(own_n, own_b, npu, bench);
  if (drop_infinities(own_n, own_b))
    measure_distance(f, own_n, own_b, rests);
  else
    f.relative_distance = kInfinite;
  const SideBySide both{n, b, npu_rests, bench.rests, npu.type, bench.type};
  if (!std::isfinite(f.relative_distance) || both.is_whole()) f.seen = seen_in(both, bench.shape);
  if (!drop_infinities(n, b)) {
    f.problem = "N/A";
    return f;
  }
  const std::optional<DType> type = coarser_of(npu, bench);
  const auto is_low = [](const Elements& e) { return unit_of(e.type) >= 0x1p-24; };
  const bool is_in_f32 = is_low(npu) && is_low(bench);
  // Each has its own: of a direction lengths say nothing.
  const double n_largest = largest_of(n), b_largest = largest_of(b);
  const double n_scale = scale_of(n_largest), b_scale = scale_of(b_largest),
               scale = scale_of(std::max(n_largest, b_largest));
  double dot = 0, nn = 0, bb = 0, dd = 0, worst = 0, relative = 0, ulps = 0;
  std::size_t within_1 = 0, within_5 = 0;
  for (std::size_t i = 0; i < n.size(); ++i) {
    const double d = std::abs(n[i] - b[i] + (rests.empty() ? 0 : rests[i]));
    const double r = relative_error(n[i], b[i], is_in_f32);
    const double ours = n[i] * n_scale, theirs = b[i] * b_scale;
    dot += ours * theirs, nn += ours * ours, bb += theirs * theirs;
    dd += (d * scale) * (d * scale);
    worst = std::max(worst, d), relative = std::max(relative, r);
    if (type && d > 0) ulps = std::max(ulps, steps_between(*type, n[i], b[i]));
    within_1 += is_within(r, 0.001, is_in_f32), within_5 += is_within(r, 0.005, is_in_f32);
  }
  const double count = static_cast<double>(n.size());
  f.max_absolute = rounded(worst), f.max_relative = rounded(relative);
  if (type) f.max_ulps = ulps;
  if (bench.shape.empty() || npu.shape.empty()) return f;
  f.distance = std::sqrt(dd) / scale;
  f.thousandth = rounded(static_cast<double>(within_1) / count);
  f.five_thousandths = rounded(static_cast<double>(within_5) / count);
  if (n.size() < 2) return f;
  // msprobe takes what is shorter than 2^-52 for nothing, whatever the two are.
  if (nn == 0 && bb == 0)
    f.cosine = 1;
  else if (nn > 0 && bb > 0)
    f.cosine = rounded(dot / (std::sqrt(nn) * std::sqrt(bb)));
  else
    f.problem = "Nan";
  if (f.cosine && *f.cosine > 0.9999) f.cosine = std::round(*f.cosine * 1e6) / 1e6;
  return f;
}

}  // namespace aloft::compare
