// Why an op computes in the types that it does: one of a few reasons, each with a sentence for
// people. Who acts on a reason asks for the value, never for the words.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace aloft {

enum class Reason : std::uint8_t {
  None,
  Exact,
  NoFloat,
  F64,
  Loss,
  Update,
  LevelO0,
  WidePhase,
  Denied,
  NoLowType,
  Allowed,
  StoredLow,
  Product,
  WidenedO1,
  WidenedO2,
  LowO3,
  FollowsO1,
  ElementWise,
  WorksOnWide,
  KeepsNumber,
  KeepsVariable,
  NormScale,
  NotAllowed,
  AsComputed,
  NoLowKernel,
  WideLayer,
};

// The sentence, without a stop; empty for None.
constexpr std::string_view text_of(Reason reason) {
  constexpr std::string_view texts[] = {
      "",
      "exact: its types are never changed",
      "no float input: nothing to decide",
      "f64 is never narrowed",
      "a loss is always f32",
      "the update is always f32",
      "O0: everything is f32",
      "the recipe keeps this phase in f32",
      "the recipe denies it: f32",
      "the back end does not have the low type",
      "the recipe allows it: low",
      "stored low, computed in f32: the back end does not multiply this type",
      "products are safe in low precision: f32 sums",
      "O1: needs range and precision, so f32 in and out",
      "O2: computed in f32, stored low",
      "O3: low throughout; sums inside the kernel stay f32",
      "O1: follows the widest of its inputs",
      "element-wise: low, like what surrounds it",
      "works on a loss, or on what was asked for in f32",
      "computed in f32, where a number that is not of the low type keeps its value",
      "a variable keeps its type",
      "a norm's scale is no narrower than x",
      "the recipe does not allow it: f32",
      "in the types of what it is the gradient of",
      "the back end has no kernel of it in the low type: f32",
      "the recipe keeps this layer in f32",
  };
  return texts[static_cast<int>(reason)];
}

// The reason of a sentence in a record; nothing where no reason has it.
constexpr std::optional<Reason> parse_reason(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(Reason::WideLayer); ++i)
    if (text_of(static_cast<Reason>(i)) == text) return static_cast<Reason>(i);
  return std::nullopt;
}

}  // namespace aloft
