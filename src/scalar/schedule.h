// Learning-rate schedules: the factor on the base rate as a pure function of the number of updates
// applied so far (s = 0 for the first update; a step skipped by the loss scaler does not count).
//
// Every kind except OneCycle starts with a linear warm-up: (s + 1) / warmup for s < warmup, so the
// first update is not wasted on rate 0 and update `warmup - 1` has the full rate. After it,
// p = clamp((s - warmup) / (total - warmup), 0, 1) and m = min_factor:
//   constant   1
//   linear     1 - (1 - m) p
//   cosine     m + (1 - m) (1 + cos(pi p)) / 2
//   step       max(m, gamma ^ floor((s - warmup) / step_size))
//   wsd        1, and over the last `decay` updates before `total`: 1 - (1 - m) q,
//              q = clamp((s - (total - decay)) / decay, 0, 1)         (warm-up, stable, decay)
//   polynomial      m + (1 - m) (1 - p)^power
//   exponential     max(m, gamma^(s - warmup))
//   multi-step      max(m, gamma^k), k: how many of the milestones, counted from the first update
//   on,
//                   are at most s
//   inverse-sqrt    max(m, sqrt(w / (s - warmup + w))), w = warmup, or 10,000 without one
//   cosine-restarts m + (1 - m) (1 + cos(pi q)) / 2, q = t / c in cycles of c updates, each
//   `growth`
//                   times as long as the one before, the first of `cycle`, from `warmup` on
//                   (Loshchilov and Hutter 2016, SGDR)
//   plateau         1; an optimizer's own factor on it falls by gamma when losses that it is told
//   of
//                   do not (scalar/plateau.h), down to m
//   one-cycle  from 1/div to 1 by a half cosine over updates 0 .. e, then to 1/(div final_div) at
//              update total - 1; e = warmup - 1, or 0.3 total - 1 when warmup is 0: torch's
//              OneCycleLR (Smith and Topin 2018). min_factor has no part in it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
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
  Plateau
};

// Every one, for loops over them.
inline constexpr ScheduleKind kAllScheduleKinds[] = {
    ScheduleKind::Constant,    ScheduleKind::Linear,         ScheduleKind::Cosine,
    ScheduleKind::Step,        ScheduleKind::OneCycle,       ScheduleKind::Wsd,
    ScheduleKind::Polynomial,  ScheduleKind::Exponential,    ScheduleKind::MultiStep,
    ScheduleKind::InverseSqrt, ScheduleKind::CosineRestarts, ScheduleKind::Plateau};

// "constant", "one-cycle", ...: as recipes name it.
constexpr std::string_view name_of(ScheduleKind kind) {
  constexpr std::string_view names[] = {
      "constant",   "linear",      "cosine",     "step",         "one-cycle",       "wsd",
      "polynomial", "exponential", "multi-step", "inverse-sqrt", "cosine-restarts", "plateau"};
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

// A schedule with its numbers. Those of other kinds mean nothing.
struct ScheduleRule {
  ScheduleKind kind = ScheduleKind::Constant;  // one factor, after the warm-up
  std::int64_t warmup = 0;                     // updates of the linear start
  std::int64_t total = 0;                      // updates of the whole run
  double min_factor = 0.0;                     // smallest, of the base rate
  std::int64_t step_size = 0;                  // updates between two drops; Step
  double gamma = 0.1;                          // factor of a drop; Step, MultiStep, Exponential
  std::int64_t decay = 0;                      // updates of the descent; Wsd; 0: a fifth of total
  double div = 25.0;                           // starts at 1 / div; OneCycle
  double final_div = 1e4;                      // ends at 1 / (div final_div); OneCycle
  double power = 1;                            // Polynomial
  std::vector<std::int64_t> milestones = {};   // updates before each drop, rising; MultiStep
  std::int64_t cycle = 0;                      // updates of the first cycle; CosineRestarts
  std::int64_t growth = 1;                     // of cycles, from one to the next; CosineRestarts
  std::int64_t patience = 10, cooldown = 0;    // losses, see scalar/plateau.h; Plateau
  double threshold = 1e-4;                     // the same
  friend bool operator==(const ScheduleRule&, const ScheduleRule&) = default;
};

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
  return "";
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
      return 1.0 - (1.0 - r.min_factor) * p;
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
    default:
      return 1.0;
  }
}

}  // namespace aloft::scalar
