// What a program or a recipe may say of an optimizer besides the numbers of its formula.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aloft {

// How a state that an optimizer keeps of each parameter lies in memory.
enum class StateFormat : std::uint8_t {
  F32,
  BF16,    // of a rule's state: rounded at random where it is written; computed in fp32
  Block8,  // the same in 8 bits, and a scale for every 256 (scalar/block_float.h)
  Split,   // of a bf16 parameter's master: the 16 more bits, and one for midpoints, that make the
           // two an fp32 (scalar/split_float.h)
};

// "f32", "bf16", "8bit", "split"
constexpr std::string_view name_of(StateFormat f) {
  constexpr std::string_view names[] = {"f32", "bf16", "8bit", "split"};
  return names[static_cast<int>(f)];
}
// Nothing where none has the name.
constexpr std::optional<StateFormat> state_format_named(std::string_view name) {
  using enum StateFormat;
  for (const StateFormat f : {F32, BF16, Block8, Split})
    if (name_of(f) == name) return f;
  return std::nullopt;
}

// How a bf16 parameter that has no master is rounded where it is updated.
enum class Rounding : std::uint8_t {
  Nearest,     // ties to even, as torch does: a step below half a bf16 step is lost
  Stochastic,  // up or down at random, each as probable as it is near: right in the mean
};
// "nearest", "stochastic"
constexpr std::string_view name_of(Rounding r) {
  return r == Rounding::Nearest ? "nearest" : "stochastic";
}

// Parameters with numbers of their own; what a group leaves out is the optimizer's. A rate follows
// the same schedule. A weight decay of a group's own holds for every parameter in it.
struct ParameterGroup {
  std::vector<std::string> parameters;  // name patterns, such as "h.*.attn.*"
  // Unset: the optimizer's. With a clip_norm the norm is that of the group's gradients.
  std::optional<double> lr = {}, weight_decay = {}, clip_norm = {}, clip_adaptive = {},
                        clip_value = {};
  bool operator==(const ParameterGroup&) const = default;
};
// Most of a recipe's numbers, the optimizer's own and a group's.
inline constexpr double kMostRate = 1e6, kMostDecay = 1e3, kMostClip = 1e9;
// The numbers that a group may have, by their names in recipes.
struct GroupNumber {
  std::string_view name;
  std::optional<double> ParameterGroup::*member;
  double most;  // in a recipe
};
inline constexpr GroupNumber kGroupNumbers[] = {
    {"lr", &ParameterGroup::lr, kMostRate},
    {"weight_decay", &ParameterGroup::weight_decay, kMostDecay},
    {"clip_norm", &ParameterGroup::clip_norm, kMostClip},
    {"clip_adaptive", &ParameterGroup::clip_adaptive, kMostClip},
    {"clip_value", &ParameterGroup::clip_value, kMostClip}};

// What is kept beside the weights in fp32: a mean of them over the updates, which is often better
// than they are. Ema: one that fades (Polyak and Juditsky 1992, with a decay); Swa: of all weights
// alike (Izmailov et al. 2018).
enum class AverageKind : std::uint8_t { None, Ema, Swa };
constexpr std::string_view name_of(AverageKind kind) {
  constexpr std::string_view names[] = {"none", "ema", "swa"};
  return names[static_cast<int>(kind)];
}
// Nothing where none has the name.
constexpr std::optional<AverageKind> average_named(std::string_view name) {
  for (const AverageKind kind : {AverageKind::None, AverageKind::Ema, AverageKind::Swa})
    if (name_of(kind) == name) return kind;
  return std::nullopt;
}
struct Averaging {
  AverageKind kind = AverageKind::None;
  double decay = 0.999;   // share of the old mean, in [0, 1); Ema
  std::int64_t from = 0;  // updates; before them the mean is the weights as they are
  explicit operator bool() const { return kind != AverageKind::None; }
  bool operator==(const Averaging&) const = default;
};

// When parameters are updated. Late: behind the whole backward pass, so that the norm can clip and
// a step with a non-finite gradient can be skipped as a whole. Early: each parameter as soon as its
// gradient is complete, which is then gone: gradients never live all at once. Where every gradient
// is finite both give the same bits; where one is not, Early keeps its parameter and moments as
// they are, updates the others, and says so as Late does (StepResult::finite, culprit).
enum class UpdateTime : std::uint8_t { Late, Early };

// What the optimizer's weight decay holds for: every parameter, as in torch.optim, if nothing else
// is said. Recipes say kWeightsDecay, as those of most language models do.
struct Decay {
  bool norms = true;                      // scales and shifts of norms decay too
  std::vector<std::string> without = {};  // name patterns of parameters that do not decay
};
// All but norms' scales and shifts and biases.
inline const Decay kWeightsDecay{.norms = false, .without = {"*.bias", "bias"}};

}  // namespace aloft
