// What a device can do, for people and for programs: runtime/backend.h's Features.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device.h"

namespace aloft::cli {

// {"name", "stores", "multiplies", "streams", "is_asynchronous", "shares_host_memory",
// "alignment_bytes", "spaces": {"device": bytes}}; bytes null: no limit of its own.
nlohmann::json features_json(const Device& device);
// The same in pairs of what and how: "multiplies", "f32 bf16 f16".
std::vector<std::pair<std::string, std::string>> features_text(const Device& device);

}  // namespace aloft::cli
