// Where a step stops to be finite: the first op whose operands are finite and whose result is not.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "observe/probe/looked_at.h"

namespace aloft::probe {

class OverflowFinder {
 public:
  // Of a program that takes statistics of every op's results, of parameters and of what updates add
  // to them; it outlives this.
  explicit OverflowFinder(const Program& program);

  // Of a step that left these numbers: null where every value that was looked at is finite. Else
  // the value that is not, by the keys of its record (dump.h) and those of docs/probe.md, with what
  // the op took.
  nlohmann::ordered_json first(std::span<const double> all) const;

 private:
  // A buffer behind the instruction that wrote it last; -1: nobody in this program.
  using Version = std::pair<int, int>;
  struct Value {
    LookedAt looked_at;
    int made_by = -1;                // the number of an instruction; -1: it comes from outside
    int result = 0;                  // which of its results
    std::vector<int> operands = {};  // of that one, those that are looked at
    bool has_operands = false;
  };
  int last_writer(int buffer, int before) const;
  bool is_finite(int value, std::span<const double> all) const;
  nlohmann::ordered_json described(const Value& value, std::span<const double> all) const;

  const Program& program_;
  std::vector<Value> values_;  // in the order in which they are made
};

// first() in a line for people: "gelu_tanh of h.0.mlp (forward, f16, model.cpp:31) ...".
std::string overflow_text(const nlohmann::ordered_json& first);

}  // namespace aloft::probe
