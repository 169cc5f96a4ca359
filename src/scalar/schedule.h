// Learning-rate schedules: the factor on the base rate as a pure function of the number of updates
// applied so far (s = 0 for the first update; a step skipped by the loss scaler does not count).
//
// Every kind except OneCycle starts with a linear warm-up: (s + 1) / warmup for s < warmup, so the
// first update is not wasted on rate 0 and update `warmup - 1` has the full rate. After it,
// p = clamp((s - warmup) / (total - warmup), 0, 1), m = min_factor and a = start_factor:
//   constant   1
//   linear     a - (a - m) p
//   cosine     m + (1 - m) (1 + cos(pi p)) / 2
//   step       max(m, gamma ^ floor((s - warmup) / step_size))
//   wsd        1, and over the last `decay` updates before `total`: 1 - (1 - m) q,
//              q = clamp((s - (total - decay)) / decay, 0, 1)         (warm-up, stable, decay)
//   polynomial      m + (1 - m) (1 - p)^power
//   exponential     max(m, gamma^(s - warmup))
//   multi-step      max(m, gamma^k), k: how many of the milestones, counted from the first update
//                   on, are at most s
//   inverse-sqrt    max(m, sqrt(w / (s - warmup + w))), w = warmup, or 10,000 without one
//   cosine-restarts m + (1 - m) (1 + cos(pi q)) / 2, q = t / c in cycles of c updates, each
//                   `growth` times as long as the one before, the first of `cycle`, from `warmup`
//                   on (Loshchilov and Hutter 2016, SGDR)
//   plateau         1; an optimizer's own factor on it falls by gamma when losses that it is told
//                   of do not (scalar/plateau.h), down to m
//   one-cycle  from 1/div to 1 by a half cosine over updates 0 .. e, then to 1/(div final_div) at
//              update total - 1; e = warmup - 1, or 0.3 total - 1 when warmup is 0: torch's
//              OneCycleLR (Smith and Topin 2018). min_factor has no part in it.
// The others begin as they say and take no warm-up:
//   low-start  a for the first `step_size` updates, then 1: torch's ConstantLR
//   triangular, triangular-2, exp-range: m + (1 - m) h d, h from 0 to 1 in `step_size` updates and
//              back in `step_down`, over and over; d is 1, (1/2)^(cycles done), gamma^s: the modes
//              of torch's CyclicLR (Smith 2015)
// and of programs alone, since no recipe has a word for what they hold:
//   table      factors[s], behind the last the last: what tabulated() and multiplied() make of a
//              function, torch's LambdaLR and MultiplicativeLR
//   sequence   the first of `parts` up to the first of `milestones`, then the second from its own
//              beginning, and so on: torch's SequentialLR
//   product    of the factors of all `parts`: torch's ChainedScheduler
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aloft::scalar {

// How the rate goes with the updates: the forms at the top of this header.
enum class ScheduleKind : std::uint8_t {
  Constant,
  Linear,
  Cosine,
  Step,
  OneCycle,
  Wsd,
  Polynomial,
  Exponential,
  MultiStep,
  InverseSqrt,
  CosineRestarts,
  Plateau,
  LowStart,
  Triangular,
  Triangular2,
  ExpRange,
  Table,
  Sequence,
  Product
};

// Every one, for loops over them.
inline constexpr ScheduleKind kAllScheduleKinds[] = {
    ScheduleKind::Constant,    ScheduleKind::Linear,         ScheduleKind::Cosine,
    ScheduleKind::Step,        ScheduleKind::OneCycle,       ScheduleKind::Wsd,
    ScheduleKind::Polynomial,  ScheduleKind::Exponential,    ScheduleKind::MultiStep,
    ScheduleKind::InverseSqrt, ScheduleKind::CosineRestarts, ScheduleKind::Plateau,
    ScheduleKind::LowStart,    ScheduleKind::Triangular,     ScheduleKind::Triangular2,
    ScheduleKind::ExpRange,    ScheduleKind::Table,          ScheduleKind::Sequence,
    ScheduleKind::Product};

// "constant", "one-cycle", ...: as recipes name it.
constexpr std::string_view name_of(ScheduleKind kind) {
  constexpr std::string_view names[] = {
      "constant",   "linear",      "cosine",       "step",         "one-cycle",       "wsd",
      "polynomial", "exponential", "multi-step",   "inverse-sqrt", "cosine-restarts", "plateau",
      "low-start",  "triangular",  "triangular-2", "exp-range",    "table",           "sequence",
      "product"};
  return names[static_cast<int>(kind)];
}

// "constant, linear, ...": of all of them.
inline std::string schedule_kind_names() {
  std::string all;
  for (const ScheduleKind kind : kAllScheduleKinds)
    all += (all.empty() ? "" : ", ") + std::string(name_of(kind));
  return all;
}

// The kind of such a name; nothing for any other.
constexpr std::optional<ScheduleKind> parse_schedule_kind(std::string_view text) {
  for (ScheduleKind kind : kAllScheduleKinds)
    if (name_of(kind) == text) return kind;
  return std::nullopt;
}

// Whether it is drawn over the whole run: `total` decides where it ends.
constexpr bool spans_total(ScheduleKind kind) {
  using enum ScheduleKind;
  return kind == Linear || kind == Cosine || kind == OneCycle || kind == Wsd || kind == Polynomial;
}
// Whether min_factor is a floor that a fall may never reach, not the value at its end.
constexpr bool falls_freely(ScheduleKind kind) {
  using enum ScheduleKind;
  return kind == Step || kind == Exponential || kind == MultiStep || kind == InverseSqrt ||
         kind == Plateau;
}

// Whether it goes up and down again, cycle by cycle: the modes of torch's CyclicLR.
constexpr bool is_triangle(ScheduleKind kind) {
  using enum ScheduleKind;
  return kind == Triangular || kind == Triangular2 || kind == ExpRange;
}
// Whether a program alone can have it: a recipe has no word for what it holds.
constexpr bool is_of_programs(ScheduleKind kind) {
  using enum ScheduleKind;
  return kind == Table || kind == Sequence || kind == Product;
}
// Whether it begins as it says, without a warm-up.
constexpr bool begins_itself(ScheduleKind kind) {
  return kind == ScheduleKind::LowStart || is_triangle(kind) || is_of_programs(kind);
}
// Of a table: each is a number that every compiled step is made with.
inline constexpr std::int64_t kMostTableFactors = 1'000'000;

// A schedule with its numbers. Those of other kinds mean nothing.
struct ScheduleRule {
  ScheduleKind kind = ScheduleKind::Constant;  // one factor, after the warm-up
  std::int64_t warmup = 0;                     // updates of the linear start
  std::int64_t total = 0;                      // updates of the whole run
  double min_factor = 0.0;                     // smallest, of the base rate
  std::int64_t step_size = 0;                  // updates between two drops; Step
                                               // of the start, LowStart; of a rise, triangles
  double gamma = 0.1;                          // factor of a drop; Step, MultiStep, Exponential
                                               // of the height with each update; ExpRange
  std::int64_t decay = 0;                      // updates of the descent; Wsd; 0: a fifth of total
  double div = 25.0;                           // starts at 1 / div; OneCycle
  double final_div = 1e4;                      // ends at 1 / (div final_div); OneCycle
  double power = 1;                            // Polynomial
  std::vector<std::int64_t> milestones = {};   // updates before each drop, rising; MultiStep
  std::int64_t cycle = 0;                      // updates of the first cycle; CosineRestarts
  std::int64_t growth = 1;                     // of cycles, from one to the next; CosineRestarts
  std::int64_t patience = 10, cooldown = 0;    // losses, see scalar/plateau.h; Plateau
  double threshold = 1e-4;                     // the same
  double start_factor = 1;                     // that it begins with; Linear, LowStart
  std::int64_t step_down = 0;                  // updates of a fall, 0: of a rise; triangles
  std::vector<double> factors = {};            // one an update; Table
  std::vector<ScheduleRule> parts = {};        // Sequence, with milestones between; Product
  friend bool operator==(const ScheduleRule&, const ScheduleRule&) = default;
};

// What is wrong with a rule, or "".
inline std::string_view problem_of(const ScheduleRule& r);

namespace internal {
// What is wrong with a kind that begins as it says, or with a start_factor; "" where nothing is.
inline std::string_view problem_of_start(const ScheduleRule& r) {
  using enum ScheduleKind;
  if (!(r.start_factor >= 0.0 && r.start_factor <= 1.0)) return "start_factor must lie in 0 .. 1";
  if (r.kind == Linear && r.start_factor < 1.0 && r.warmup > 0)
    return "a linear schedule that rises from start_factor takes no warmup";
  if (begins_itself(r.kind) && r.warmup != 0)
    return "this kind begins as it says: warmup must be 0";
  if ((r.kind == LowStart || is_triangle(r.kind)) && r.step_size < 1)
    return "step_size must be at least 1";
  if (r.step_down < 0) return "step_down must not be negative";
  if (r.kind == ExpRange && !(r.gamma > 0.0 && r.gamma <= 1.0)) return "gamma must lie in (0, 1]";
  return "";
}
inline std::string_view problem_of_parts(const ScheduleRule& r) {
  using enum ScheduleKind;
  if (r.kind == Table) {
    const auto count = static_cast<std::int64_t>(r.factors.size());
    if (count < 1 || count > kMostTableFactors) return "factors must be 1 to 1,000,000 numbers";
    const auto fits = [](double f) { return std::isfinite(static_cast<float>(f)) && f >= 0; };
    if (!std::ranges::all_of(r.factors, fits)) return "factors must be 0 or more, and finite";
  }
  if (r.kind != Sequence && r.kind != Product) return "";
  if (r.parts.empty()) return "parts must be at least one schedule";
  if (r.kind == Sequence) {
    if (r.milestones.size() + 1 != r.parts.size())
      return "milestones must be one fewer than the parts that they lie between";
    if (!r.milestones.empty() &&
        (r.milestones[0] < 1 || !std::ranges::is_sorted(r.milestones, std::less_equal<>())))
      return "milestones must be updates from 1 on, rising";
  }
  for (const ScheduleRule& part : r.parts) {
    if (part.kind == Plateau) return "a plateau, which goes by losses, cannot be one of the parts";
    if (const std::string_view problem = problem_of(part); !problem.empty()) return problem;
  }
  return "";
}
}  // namespace internal
// What is wrong with a rule, or "".
inline std::string_view problem_of(const ScheduleRule& r) {
  using enum ScheduleKind;
  if (r.warmup < 0) return "warmup must not be negative";
  if (r.total < 0) return "total must not be negative";
  if (!(r.min_factor >= 0.0 && r.min_factor <= 1.0)) return "min_factor must lie in 0 .. 1";
  if (spans_total(r.kind) && r.total < 1) return "total must be at least 1 update";
  if (spans_total(r.kind) && r.warmup > r.total) return "warmup must not be longer than the run";
  if (r.kind == Step && r.step_size < 1) return "step_size must be at least 1";
  const bool drops =
      r.kind == Step || r.kind == MultiStep || r.kind == Exponential || r.kind == Plateau;
  if (drops && !(r.gamma > 0.0 && r.gamma <= 1.0)) return "gamma must lie in (0, 1]";
  if (r.kind == Polynomial && !(r.power > 0.0 && r.power <= 100.0))
    return "power must lie in (0, 100]";
  if (r.kind == MultiStep &&
      (r.milestones.empty() || r.milestones[0] < 0 || !std::ranges::is_sorted(r.milestones)))
    return "milestones must be some updates, rising";
  if (r.kind == Plateau && (r.patience < 0 || r.cooldown < 0))
    return "patience and cooldown must not be negative";
  if (r.kind == Plateau && !(r.threshold >= 0.0 && r.threshold < 1.0))
    return "threshold must lie in [0, 1)";
  if (r.kind == CosineRestarts && r.cycle < 1) return "cycle must be at least 1 update";
  if (r.kind == CosineRestarts && (r.growth < 1 || r.growth > 1000))
    return "growth must lie in 1 .. 1000";
  if (r.kind == Wsd && r.decay < 0) return "decay must not be negative";
  if (r.kind == Wsd && r.decay > r.total) return "decay must not be longer than the run";
  if (r.kind == OneCycle && !(r.div >= 1.0 && r.final_div >= 1.0))
    return "div and final_div must be at least 1";
  if (const std::string_view problem = internal::problem_of_start(r); !problem.empty())
    return problem;
  return internal::problem_of_parts(r);
}

namespace internal {
// From a to b by a half cosine, t in 0 .. 1.
inline double cosine_between(double a, double b, double t) {
  return b + (a - b) * 0.5 * (1.0 + std::cos(std::numbers::pi * t));
}

inline double one_cycle(const ScheduleRule& r, std::int64_t s) {
  const double start = 1.0 / r.div, finish = start / r.final_div;
  const double last = static_cast<double>(r.total - 1);
  const double peak = (r.warmup > 0 ? static_cast<double>(r.warmup) : 0.3 * r.total) - 1.0;
  const double at = std::min(static_cast<double>(s), last);
  if (at < peak) return cosine_between(start, 1.0, at / peak);
  return last > peak ? cosine_between(
                           1.0, finish,
                           std::min(1.0, (at - std::max(peak, 0.0)) / (last - std::max(peak, 0.0))))
                     : 1.0;
}
// How far a cycle is done, 0 to below 1, `s` updates behind the first.
inline double part_of_cycle(const ScheduleRule& r, std::int64_t s) {
  const std::int64_t cycle = std::max<std::int64_t>(r.cycle, 1);
  double done = static_cast<double>(s), length = static_cast<double>(cycle);
  if (r.growth <= 1) return static_cast<double>(s % cycle) / length;
  while (done >= length) done -= length, length *= static_cast<double>(r.growth);
  return done / length;
}
// How high a triangle is at update s, 0 to 1, times what its kind makes of that.
inline double triangle(const ScheduleRule& r, std::int64_t s) {
  const auto up = static_cast<std::uint64_t>(std::max<std::int64_t>(r.step_size, 1));
  const auto down = r.step_down > 0 ? static_cast<std::uint64_t>(r.step_down) : up;
  const std::uint64_t cycles = static_cast<std::uint64_t>(s) / (up + down);
  const std::uint64_t at = static_cast<std::uint64_t>(s) % (up + down);
  const double height = at <= up ? static_cast<double>(at) / static_cast<double>(up)
                                 : static_cast<double>(up + down - at) / static_cast<double>(down);
  if (r.kind == ScheduleKind::Triangular2)
    return height * std::pow(0.5, static_cast<double>(cycles));
  if (r.kind == ScheduleKind::ExpRange) return height * std::pow(r.gamma, static_cast<double>(s));
  return height;
}
}  // namespace internal

// The factor for the update made after `applied` applied ones.
inline double schedule_factor(const ScheduleRule& r, std::int64_t applied) {
  const std::int64_t s = std::max<std::int64_t>(applied, 0);
  if (r.kind == ScheduleKind::OneCycle) return internal::one_cycle(r, s);
  if (s < r.warmup) return static_cast<double>(s + 1) / static_cast<double>(r.warmup);
  auto part = [](std::int64_t done, std::int64_t of) {
    return of <= 0 ? 1.0
                   : std::clamp(static_cast<double>(done) / static_cast<double>(of), 0.0, 1.0);
  };
  const double p = part(s - r.warmup, r.total - r.warmup);
  switch (r.kind) {
    case ScheduleKind::Linear:
      return r.start_factor - (r.start_factor - r.min_factor) * p;
    case ScheduleKind::Cosine:
      return internal::cosine_between(1.0, r.min_factor, p);
    case ScheduleKind::Step: {
      const std::int64_t drops = (s - r.warmup) / std::max<std::int64_t>(r.step_size, 1);
      return std::max(r.min_factor, std::pow(r.gamma, static_cast<double>(drops)));
    }
    case ScheduleKind::Wsd: {
      const std::int64_t decay = r.decay > 0 ? r.decay : std::max<std::int64_t>(r.total / 5, 1);
      const std::int64_t done = s - (r.total - decay);
      return done <= 0 ? 1.0 : 1.0 - (1.0 - r.min_factor) * part(done, decay);
    }
    case ScheduleKind::Polynomial:
      return r.min_factor + (1.0 - r.min_factor) * std::pow(1.0 - p, r.power);
    case ScheduleKind::Exponential:
      return std::max(r.min_factor, std::pow(r.gamma, static_cast<double>(s - r.warmup)));
    case ScheduleKind::MultiStep: {
      const auto behind = std::ranges::upper_bound(r.milestones, s) - r.milestones.begin();
      return std::max(r.min_factor, std::pow(r.gamma, static_cast<double>(behind)));
    }
    case ScheduleKind::InverseSqrt: {
      const double w = r.warmup > 0 ? static_cast<double>(r.warmup) : 10000.0;
      return std::max(r.min_factor, std::sqrt(w / (static_cast<double>(s - r.warmup) + w)));
    }
    case ScheduleKind::CosineRestarts:
      return internal::cosine_between(1.0, r.min_factor, internal::part_of_cycle(r, s - r.warmup));
    case ScheduleKind::LowStart:
      return s < r.step_size ? r.start_factor : 1.0;
    case ScheduleKind::Triangular:
    case ScheduleKind::Triangular2:
    case ScheduleKind::ExpRange:
      return r.min_factor + (1.0 - r.min_factor) * internal::triangle(r, s);
    case ScheduleKind::Table: {
      const auto last = static_cast<std::int64_t>(r.factors.size()) - 1;
      return last < 0 ? 1.0 : r.factors[static_cast<std::size_t>(std::min(s, last))];
    }
    case ScheduleKind::Sequence: {
      const auto behind = std::ranges::upper_bound(r.milestones, s) - r.milestones.begin();
      const auto k = static_cast<std::size_t>(behind);
      if (k >= r.parts.size()) return 1.0;
      return schedule_factor(r.parts[k], k == 0 ? s : s - r.milestones[k - 1]);
    }
    case ScheduleKind::Product: {
      double product = 1.0;
      for (const ScheduleRule& part : r.parts) product *= schedule_factor(part, s);
      return product;
    }
    default:
      return 1.0;
  }
}

// torch's LambdaLR: the factors that `function` gives for 0, 1, ... updates - 1 applied updates,
// asked for once, here; behind them the last stays. So a step asks the host nothing, and a run that
// goes on has the same rates.
template <class Function>
ScheduleRule tabulated(const Function& function, std::int64_t updates) {
  ScheduleRule rule{.kind = ScheduleKind::Table};
  for (std::int64_t s = 0; s < std::clamp<std::int64_t>(updates, 0, kMostTableFactors + 1); ++s)
    rule.factors.push_back(static_cast<double>(function(s)));
  return rule;
}
// torch's MultiplicativeLR: 1, and each factor that of the update before times what `function`
// gives for the number of this one.
template <class Function>
ScheduleRule multiplied(const Function& function, std::int64_t updates) {
  double product = 1;
  return tabulated(
      [&](std::int64_t s) { return s == 0 ? 1.0 : product *= static_cast<double>(function(s)); },
      updates);
}

}  // namespace aloft::scalar
