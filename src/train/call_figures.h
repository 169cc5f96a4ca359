// Range, mean and norm of a tensor that a call took or gave, as its record in dump.json has them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "ops/host_array.h"

namespace aloft {

// "Max", "Min", "Mean" and "Norm", in double; what is not finite as a word. Null each of no
// elements, and of types that are no floats.
nlohmann::ordered_json call_figures(const HostArray& values);

// The first of these that a record says otherwise: "Max is 2.5, and in dump.json 3"; "" where all
// are the same but for the order in which they were summed. What the record does not have, or has
// as null, is not held against anything.
std::string contradicted_figure(const nlohmann::json& record, const HostArray& values);

}  // namespace aloft
