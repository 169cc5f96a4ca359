// The precision rules as one constexpr function of plain facts, so that the table in
// docs/precision.md is checked by static_assert. decide.h gathers the facts.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "precision/reason.h"
#include "precision/recipe.h"
#include "types/capability.h"
#include "types/dtype.h"
#include "types/numeric.h"
#include "types/phase.h"

namespace aloft {

struct Decision {
  bool applies = false;           // false: leave the node as it is; the types below mean nothing
  DType compute = DType::F32;     // products and functions are evaluated on values of this type
  DType accumulate = DType::F32;  // sums are kept in it; F32 or wider, always
  DType store = DType::F32;       // the outputs: a node that infers another float type is cast
  std::optional<DType> cast_inputs = {};  // float inputs are cast to it; nothing: read as they are
  Reason reason = Reason::None;
};

enum class Listing : unsigned char { Unlisted, Allowed, Denied };

// What the rules ask about a node.
struct Facts {
  Numeric numeric = Numeric::Follow;
  Phase phase = Phase::Forward;
  Listing listing = Listing::Unlisted;
  bool is_loss = false, is_norm = false;
  bool any_float = true;      // among the inputs
  bool mixed = false;         // float inputs of different types
  DType widest = DType::F32;  // of the float inputs
  Level level = Level::O0;
  bool only_allowed = false;
  bool is_layer_listed = false;
  DType low = DType::BF16;  // of the phase; F32 where the recipe keeps it wide
  Capability capability = {};
};

// The narrowest type that holds every value of both; f32 for bf16 with f16.
constexpr DType wider(DType a, DType b) {
  if (a == b) return a;
  return a == DType::F64 || b == DType::F64 ? DType::F64 : DType::F32;
}

constexpr Facts with_inputs(Facts facts, std::span<const DType> inputs) {
  facts.any_float = facts.mixed = false;
  for (DType t : inputs) {
    if (!is_float(t)) continue;
    facts.mixed = facts.mixed || (facts.any_float && t != facts.widest);
    facts.widest = facts.any_float ? wider(facts.widest, t) : t;
    facts.any_float = true;
  }
  return facts;
}

constexpr Decision wide_decision(Reason reason) {
  return {true, DType::F32, DType::F32, DType::F32, DType::F32, reason};
}

constexpr Decision narrow_decision(const Facts& f, Reason reason) {
  if (!f.capability.computes(f.low))
    return {true, DType::F32, DType::F32, f.low, f.low, Reason::StoredLow};
  return {true, f.low, DType::F32, f.low, f.low, reason};
}

constexpr Decision decide_widen(const Facts& f) {
  if (f.level == Level::O1) return wide_decision(Reason::WidenedO1);
  // Two types meet where phases or listings do: bf16 activations with f16 cotangents, say.
  const auto cast = f.mixed ? std::optional(DType::F32) : std::nullopt;
  if (f.level == Level::O2) return {true, DType::F32, DType::F32, f.low, cast, Reason::WidenedO2};
  // A norm reads its scale beside x as it is, in x's type or f32.
  const bool as_it_is = f.is_norm && (f.mixed || f.widest == f.low);
  return {true, f.low, DType::F32, f.low, as_it_is ? cast : std::optional(f.low), Reason::LowO3};
}

constexpr Decision widest_decision(const Facts& f, Reason reason) {
  const auto cast = f.mixed ? std::optional(f.widest) : std::nullopt;
  return {true, f.widest, DType::F32, f.widest, cast, reason};
}

constexpr Decision decide_follow(const Facts& f) {
  if (f.level == Level::O1) return widest_decision(f, Reason::FollowsO1);
  return narrow_decision(f, Reason::ElementWise);
}

// Under a white list: an op of the model that is not on it, and what differentiation adds. An op's
// name tells nothing there: the gradient of an f32 product has products, too.
constexpr Decision decide_unlisted(const Facts& f) {
  if (f.phase != Phase::Backward) return wide_decision(Reason::NotAllowed);
  if (f.numeric == Numeric::Widen) return wide_decision(Reason::WidenedO1);
  return widest_decision(f, Reason::AsComputed);
}

// The rules in order; the first that fits decides.
constexpr Decision decide_facts(const Facts& f) {
  using enum DType;
  if (f.numeric == Numeric::Exact) return {.reason = Reason::Exact};
  if (!f.any_float) return {.reason = Reason::NoFloat};
  if (f.widest == F64)
    return {true, F64, F64, F64, f.mixed ? std::optional(F64) : std::nullopt, Reason::F64};
  if (f.is_loss)
    return {true, F32, F32, F32, f.mixed ? std::optional(F32) : std::nullopt, Reason::Loss};
  if (f.phase == Phase::Update) return wide_decision(Reason::Update);
  if (f.level == Level::O0) return wide_decision(Reason::LevelO0);
  if (!is_low(f.low))
    return wide_decision(f.is_layer_listed ? Reason::WideLayer : Reason::WidePhase);
  if (f.listing == Listing::Denied) return wide_decision(Reason::Denied);
  if (!f.capability.stores(f.low)) return wide_decision(Reason::NoLowType);
  if (f.only_allowed && (f.listing == Listing::Unlisted || f.phase == Phase::Backward))
    return decide_unlisted(f);
  if (f.listing == Listing::Allowed) return narrow_decision(f, Reason::Allowed);
  switch (f.numeric) {
    case Numeric::Narrow:
      return narrow_decision(f, Reason::Product);
    case Numeric::Widen:
      return decide_widen(f);
    default:
      return decide_follow(f);
  }
}

}  // namespace aloft
