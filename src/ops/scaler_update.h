// The loss scaler's state machine (scalar/loss_scaler.h) as an op: device state in, device state
// out.
#pragma once

#include "ops/declared.h"
#include "scalar/loss_scaler.h"

namespace aloft {

struct ScalerUpdateAttrs {
  std::string kind = "none";
  double growth = 2.0;
  double backoff = 0.5;
  std::int64_t growth_interval = 2000;
  double max = 16777216.0;
  double min = 1.0;
  static constexpr auto fields() {
    using A = ScalerUpdateAttrs;
    return FieldList{field("kind", &A::kind, "none, fixed or dynamic"),
                     field("growth", &A::growth, "factor after growth_interval clean steps"),
                     field("backoff", &A::backoff, "factor on overflow"),
                     field("growth_interval", &A::growth_interval, "clean steps in a row"),
                     field("max", &A::max, "ceiling of the scale"),
                     field("min", &A::min, "floor of the scale")};
  }
  static ScalerUpdateAttrs of(const scalar::ScalerRule& rule);
  scalar::ScalerRule rule() const;
};

struct ScalerTensors;  // ops/step_tensors.h

// The state after a step whose gradients were all finite (i32[], 1) or not (0).
ScalerTensors scaler_update(const ScalerTensors& state, Operand finite,
                            const scalar::ScalerRule& rule);

// Inline, so that back ends need no more than this header.
inline ScalerUpdateAttrs ScalerUpdateAttrs::of(const scalar::ScalerRule& r) {
  return {
      std::string(scalar::name_of(r.kind)), r.growth, r.backoff, r.growth_interval, r.max, r.min};
}

inline scalar::ScalerRule ScalerUpdateAttrs::rule() const {
  using enum scalar::ScalerKind;
  scalar::ScalerRule r;
  r.kind = kind == name_of(Dynamic) ? Dynamic : kind == name_of(Fixed) ? Fixed : None;
  r.growth = growth;
  r.backoff = backoff;
  r.growth_interval = static_cast<std::int32_t>(growth_interval);
  r.max = static_cast<float>(max);
  r.min = static_cast<float>(min);
  return r;
}

}  // namespace aloft
