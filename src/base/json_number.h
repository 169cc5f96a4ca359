// Numbers that JSON has none for.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace aloft {

// A number; of what is not finite its word: "nan", "inf", "-inf".
nlohmann::ordered_json json_number(double v);

}  // namespace aloft
