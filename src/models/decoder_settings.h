// What the families of decoders say alike of their settings.
#pragma once

#include <optional>
#include <string_view>

#include "models/family.h"

namespace aloft::models {

// What other heads mean for a run that goes on.
inline constexpr std::string_view kOtherHeads =
    "the weights would mean something else: they would be cut into other heads";

// Heads that do not divide the width, where theirs is not given, or that are no multiple of those
// of keys and values.
std::optional<Misfit> heads_misfit(const SettingValues& values);

// A block keeps its input, q, k and v, the attention's output, and the widened rows of its MLP:
// nine widths a token, of which at least eight live at once when the gradient begins.
double decoder_least_kept(const SettingValues& values);

}  // namespace aloft::models
