// Whether text is JSON by its shape, for telling it from prose and programs: by how values, commas,
// colons and brackets follow one another. Not a reader of JSON.
#pragma once

#include <string_view>

namespace aloft {

enum class JsonShape {
  None,
  Begun,  // it ends within a value, and has the shape until there
  Whole,
};

// The shape of objects and arrays, one or several behind one another. What a strict parser refuses
// but writers of JSON let through has it too: NaN and Infinity, numbers of any size, half of a
// surrogate pair, any byte but a line end in a string, a comma behind the last value or between
// two lines, the record separator (0x1e) of JSON text sequences.
JsonShape json_shape(std::string_view text);

// Whether all of it is one string in JSON's quotes.
bool is_json_string(std::string_view text);

}  // namespace aloft
