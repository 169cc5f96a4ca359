// What runs chose by measurement (plan/choices.h), as run.json and checkpoints have it:
//   "choices": {"precision": {"value": "O2:bf16", "because": "bf16 1210 GFLOP/s, f32 410 ..."}}
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "plan/choices.h"

namespace aloft {

nlohmann::json json_of(const Choices& choices);

// Nothing where the JSON is not of that form.
std::optional<Choices> choices_of_json(const nlohmann::json& json);

}  // namespace aloft
