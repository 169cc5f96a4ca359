// What measure-layers calls the errors that it adds to a program's results.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "types/dtype.h"
#include "types/phase.h"

namespace aloft {

// "error:h.0.attn:backward:bf16", an f32[]: the largest relative error (L2) of what the layer hands
// on in the phase.
std::string layer_error_name(std::string_view layer, Phase phase, DType low);

struct LayerErrorName {
  std::string layer;
  Phase phase = Phase::Forward;
  DType low = DType::BF16;
};
// Nothing for another result's name.
std::optional<LayerErrorName> parse_layer_error(std::string_view name);

}  // namespace aloft
