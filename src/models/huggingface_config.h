// config.json of transformers, by what the families say of it (PublishedForm, SettingRole). A key
// that nobody here knows could change what a model computes: it is refused by name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/file.h"
#include "models/model_spec.h"

namespace aloft::models {

// The model that config.json describes; settings that it does not decide have their fallbacks.
// DataError E0631.
ModelSpec read_huggingface_config(const Path& path);

// What such a file says of a model, so that transformers makes the same one.
nlohmann::json huggingface_config(const ModelSpec& spec);

}  // namespace aloft::models
