// The record of a value in a dump: which keys it has, and their text.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "observe/probe/looked_at.h"

namespace aloft::probe {

// "torch.float32", as files of PyTorch name a type of floats.
std::string torch_name(DType t);

// A value's record: the keys that msprobe reads, in its order, then those that it has no name for.
// A number that JSON has none for is text here, "nan", "inf", and Python's bare word in put_record.
nlohmann::ordered_json record_of(const LookedAt& value, std::span<const double> all,
                                 bool requires_grad);

// Adds that record's text to `out`, with the members of `added` (an object or null) behind its own:
// what Python's json.dump(indent=1) has for it where it lies in `depth` objects and lists. A step
// has hundreds of records: making values of JSON of them takes four times as long.
void put_record(std::string& out, const LookedAt& value, std::span<const double> all,
                bool requires_grad, int depth, const nlohmann::ordered_json& added);

// Adds the text that json.dump(1, ' ', false, replace) has for a text, a number, true, false, null.
void put_plain(std::string& out, const nlohmann::ordered_json& json);

}  // namespace aloft::probe
