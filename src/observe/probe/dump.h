// Statistics as msprobe dumps them, so that its tools read ours: a folder a step with dump.json
// (numbers), construct.json (which call lies in which) and stack.json (from which line of the
// program). docs/probe.md says what each key is.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "observe/probe/looked_at.h"

namespace aloft::probe {

// A module of the model that is looked at.
struct DumpedModule {
  std::string path;  // "h.0.mlp"
  std::string kind;  // "Linear"; empty of a class that does not say
};

// Which names msprobe gives to what a program takes statistics of.
class Dump {
 public:
  // `modules`: all of the model; `level`: "module" (msprobe's L0) or "op" (L1).
  Dump(std::vector<LookedAt> values, const std::vector<DumpedModule>& modules, std::string level);

  // Of a step that left these numbers. A number that JSON has none for is text: "nan", "inf".
  nlohmann::ordered_json numbers(std::span<const double> all) const;
  nlohmann::ordered_json construct() const;  // the same for every step, as
  nlohmann::ordered_json stack() const;      // this

 private:
  // Where a value's record stands: under data[entry][list], at the end, or there by its own name.
  struct Place {
    std::string entry, list, parameter = {};
    bool requires_grad = false;
  };
  Place place_of_call(std::string_view name) const;
  Place place_of_parameter(std::string_view name) const;
  Place place_of_op(const LookedAt& value);
  std::string class_of(std::string_view path) const;

  std::vector<LookedAt> values_;
  std::vector<DumpedModule> modules_;
  std::string level_;
  std::vector<Place> places_;                           // of each value
  std::vector<std::string> entries_;                    // in order of appearance
  std::vector<std::pair<std::string, int>> op_counts_;  // calls of each op and phase, less one
  std::string last_call_;
};

}  // namespace aloft::probe
