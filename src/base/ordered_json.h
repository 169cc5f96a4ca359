// JSON whose objects keep the order in which they were written: for what shows them again. Other
// readers take parse_json (json.h), by whose rules this goes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace aloft {

// The value of a text; discarded (is_discarded()) where it is not JSON or nests deeper than
// kDeepestJson: json_problem() says which. A key that stands twice has the place of its first and
// the value of its last. Never throws, for any bytes.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

}  // namespace aloft
