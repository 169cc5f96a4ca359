// A model's settings as run.json and checkpoints have them: {"family": "gpt2", "layers": 6, ...}.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "models/model_spec.h"

namespace aloft::models {

// All but those of the first weights (SettingRole::is_of_start).
nlohmann::json json_of(const ModelSpec& spec);
// Settings that an older program did not write have their fallbacks. DataError E0642 where the JSON
// is no such description, or one of a family that is not known here.
ModelSpec model_of_json(const nlohmann::json& json);

}  // namespace aloft::models
