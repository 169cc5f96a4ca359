// Loss scaling as a pure state machine. The loss is multiplied by `scale` before the backward pass
// and the gradients are divided by it in the update, so that small fp16 gradients do not underflow.
//
// One fact drives it: were all gradients of the step finite? An infinity or a NaN anywhere, in any
// element, is an overflow: the step then changes no parameter, moment, step count or schedule. The
// check is on for every kind, None (fp32, bf16) included; only what happens to `scale` differs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace aloft::scalar {

// Whether the loss is scaled: not at all, by a number, by one that follows the overflows.
enum class ScalerKind : std::uint8_t { None, Fixed, Dynamic };

// "none", "fixed", "dynamic".
constexpr std::string_view name_of(ScalerKind kind) {
  return kind == ScalerKind::None ? "none" : kind == ScalerKind::Fixed ? "fixed" : "dynamic";
}

// How the scale begins and moves; the numbers are torch.amp.GradScaler's, which has no bounds and
// never gives up.
struct ScalerRule {
  ScalerKind kind = ScalerKind::None;   // with None give_up_after alone counts
  float init = 65536.0f;                // 2^16; the scale itself for Fixed
  double growth = 2.0;                  // factor after growth_interval clean steps
  double backoff = 0.5;                 // factor after an overflow
  std::int32_t growth_interval = 2000;  // clean steps in a row before the scale grows
  float max = 16777216.0f;              // largest scale, 2^24
  float min = 1.0f;                     // smallest scale
  std::int32_t give_up_after = 1000;    // overflows in a row that stop the run
  friend constexpr bool operator==(const ScalerRule&, const ScalerRule&) = default;
};

// The ceiling of rules that have none: behind it doubling would be infinity.
inline constexpr float kNoCeiling = 0x1p127f;
// The floor of rules that have none: the smallest number above 0.
inline constexpr float kNoFloor = 0x1p-149f;
// A number of steps, as a rule holds it.
constexpr std::int32_t interval_of(std::int64_t steps) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(steps, 0, INT32_MAX));
}

// The scale of fixed_scaler().
inline constexpr float kFixedScale = 128.0f;

// The three kinds of rule.
constexpr ScalerRule no_scaler() { return {}; }
constexpr ScalerRule fixed_scaler(float scale = kFixedScale) {
  return {.kind = ScalerKind::Fixed, .init = scale};
}
constexpr ScalerRule dynamic_scaler() { return {.kind = ScalerKind::Dynamic}; }

// Device state of a training Plan; saved in checkpoints.
struct ScalerState {
  float scale = 1.0f;             // of the next step's loss
  std::int32_t good_steps = 0;    // clean steps since the scale last changed; Dynamic only
  std::int32_t overflow_run = 0;  // overflowed steps in a row up to now
  std::int64_t skipped = 0;       // overflowed steps in all
  friend constexpr bool operator==(const ScalerState&, const ScalerState&) = default;
};

// The state before the first step.
constexpr ScalerState initial_state(const ScalerRule& rule) {
  return {.scale = rule.kind == ScalerKind::None ? 1.0f : rule.init};
}

// The state after a step whose gradients were all finite, or not. Growth needs growth_interval
// clean steps in a row and starts the count anew, at the ceiling too.
constexpr ScalerState next(ScalerState s, bool finite, const ScalerRule& rule) {
  if (!finite) {
    s.skipped += 1;
    if (s.overflow_run < INT32_MAX) s.overflow_run += 1;
    s.good_steps = 0;
    if (rule.kind == ScalerKind::Dynamic) {
      s.scale = static_cast<float>(s.scale * rule.backoff);
      if (s.scale < rule.min) s.scale = rule.min;
    }
    return s;
  }
  s.overflow_run = 0;
  if (rule.kind == ScalerKind::Dynamic && ++s.good_steps >= rule.growth_interval) {
    s.good_steps = 0;
    s.scale = static_cast<float>(s.scale * rule.growth);
    if (s.scale > rule.max) s.scale = rule.max;
  }
  return s;
}

// The run stops: the numbers do not recover by skipping.
constexpr bool must_give_up(const ScalerState& s, const ScalerRule& rule) {
  return s.overflow_run >= rule.give_up_after;
}

// What is wrong with a rule, or "": for recipes and checkpoints.
constexpr std::string_view problem_of(const ScalerRule& r) {
  constexpr float kHuge = 3.0e38f;
  if (r.give_up_after < 1) return "give_up_after must be at least 1";
  if (r.kind == ScalerKind::None) return "";
  if (!(r.init > 0.0f && r.init < kHuge)) return "the scale must be positive and finite";
  if (r.kind == ScalerKind::Fixed) return "";
  if (!(r.growth > 1.0 && r.growth < kHuge)) return "growth must be greater than 1";
  if (!(r.backoff > 0.0 && r.backoff < 1.0)) return "backoff must lie between 0 and 1";
  if (r.growth_interval < 1) return "growth_interval must be at least 1";
  if (!(r.min > 0.0f && r.min <= r.max && r.max < kHuge)) return "need 0 < min <= max";
  if (!(r.init >= r.min && r.init <= r.max)) return "init must lie between min and max";
  return "";
}

}  // namespace aloft::scalar
