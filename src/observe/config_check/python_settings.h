// Hyper-parameters that a file of Python assigns: `learning_rate = 6e-4`. It is read, never run.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace aloft::config_check {

struct PythonValue {
  std::string name;
  nlohmann::ordered_json value;
  int line = 0;
};

struct PythonError : std::runtime_error {
  PythonError(const std::string& what, int at) : std::runtime_error(what), line(at) {}
  int line;
};

// What the file's own lines (none of a function, a class, a condition) assign to plain names, where
// it is a literal: a number, a product of numbers, a text, True, False, None, and lists, tuples and
// dictionaries of these. Of a name that is assigned twice the last counts; one that is at last
// assigned something else, or changed (`+=`), is not there. PythonError: a text or a bracket is not
// closed, or lists lie too deep within one another.
std::vector<PythonValue> parse_python(std::string_view text);

}  // namespace aloft::config_check
