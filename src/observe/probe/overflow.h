// Where a step stops to be finite: the first op whose operands are finite and whose result is not.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "observe/probe/looked_at.h"

namespace aloft::probe {

// A value that was looked at, and what made it.
struct MadeValue {
  LookedAt looked_at;
  // The number of the instruction, or of the eager call, that made it, in the order of execution;
  // -1: it comes from outside.
  int made_by = -1;
  int result = 0;  // which of its results
  // Of what made it: the op, the module in which it stands, and of a fused one the calls in it.
  std::string op = {}, module = {};
  std::vector<std::string> stands_for = {};
  std::string call = {};  // of an eager one its name: "h.0.mlp/gelu_tanh#0"
  bool has_operands = false;
  std::vector<std::string> operands = {};  // names of what it took, of what was looked at
  // Of floats that it took and at which nobody looked, what they are: "f32[4,1] of 1/linear#0".
  std::vector<std::string> unseen = {};
};

class OverflowFinder {
 public:
  // Of a program that takes statistics of every op's results, of inputs, of variables and of what
  // updates add to parameters.
  explicit OverflowFinder(const Program& program);
  // Of an eager step that showed these.
  explicit OverflowFinder(std::vector<MadeValue> values);

  // Of a step that left these numbers: null where every value that was looked at is finite. Else
  // the value that is not, by the keys of its record (dump.h) and those of docs/probe.md, with what
  // the op took.
  nlohmann::ordered_json first(std::span<const double> all) const;

 private:
  std::vector<MadeValue> values_;  // in the order in which they are made
  std::map<std::string, std::size_t> place_of_;
};

// A step, counted from 0 as dumps count, with the number that terminal and metrics.jsonl give it.
std::string step_text(std::int64_t step);

// first() in a line for people: "gelu_tanh of h.0.mlp (forward, f16, called at model.cpp:31) ...".
std::string overflow_text(const nlohmann::ordered_json& first);

}  // namespace aloft::probe
