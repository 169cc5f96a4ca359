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
  BF16,   // rounded to nearest even where it is written; computed in fp32
  Split,  // of a bf16 parameter's master: the 16 more bits, and one for midpoints, that make the
          // two an fp32 (scalar/split_float.h)
};

// "f32", "bf16", "split"
constexpr std::string_view name_of(StateFormat f) {
  constexpr std::string_view names[] = {"f32", "bf16", "split"};
  return names[static_cast<int>(f)];
}
// Nothing where none has the name.
constexpr std::optional<StateFormat> state_format_named(std::string_view name) {
  for (const StateFormat f : {StateFormat::F32, StateFormat::BF16, StateFormat::Split})
    if (name_of(f) == name) return f;
  return std::nullopt;
}

// Parameters with numbers of their own; what a group leaves out is the optimizer's. A rate follows
// the same schedule. A weight decay of a group's own holds for every parameter in it.
struct ParameterGroup {
  std::vector<std::string> parameters;     // name patterns, such as "h.*.attn.*"
  std::optional<double> lr, weight_decay;  // unset: the optimizer's
  bool operator==(const ParameterGroup&) const = default;
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
