// A model's configuration as JSON: in run.json and in checkpoints' manifests.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "models/gpt2.h"

namespace aloft {

nlohmann::json json_of(const models::Gpt2Config& config);
// DataError E0642.
models::Gpt2Config model_of_json(const nlohmann::json& json);

}  // namespace aloft
