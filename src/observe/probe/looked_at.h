// What a program says of its own values: which of them it takes statistics of (the op
// `statistics`, types/statistics.h), read from its Plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "types/phase.h"
#include "types/shape.h"
#include "types/statistics.h"

namespace aloft::probe {

// A value that a program takes statistics of.
struct LookedAt {
  // What the op takes that gives it: the name of a value that is looked at, "" of another one.
  struct Operand {
    std::string name;
    bool is_backward = false;  // the backward pass computes it

    friend bool operator==(const Operand&, const Operand&) = default;
  };
  std::string name;    // its tap's, without what stands in front: "h.0.mlp/gelu_tanh#0"
  TensorType type;     // of the value; its outermost length may be a symbol
  std::size_t at = 0;  // where its numbers begin in the program's output kAllStatistics
  Phase phase = Phase::Forward;
  std::string file;  // of the call that computes it, where the user's program says
  int line = 0;
  std::size_t order = 0;       // of what computes it: the number of the instruction, or eager call
  bool has_exponents = false;  // the counts of exponents stand behind the numbers
  std::vector<Operand> operands = {};  // of an op's result, in the op's order
  // In a step of several programs: the first call in its own of the module that computes it. Of a
  // parameter where its record stands: the call of its module that reads it, or which update of it
  // it is; where that is not 0, the name ends with of_call() of it.
  int call = 0;
};

// "h.0/layer_norm#0" of "h.0/layer_norm#0.1", its second result.
std::string_view call_of(std::string_view name);

// In the order of the program's outputs, and results of one call, or calls of one op, where they
// belong also where they are computed once more for the look; several names may stand for one
// value. Nothing where the program takes no statistics.
std::vector<LookedAt> looked_at_in(const Program& program);

// The statistics of one of them, of what a run left in kAllStatistics.
TensorStatistics statistics_of(const LookedAt& value, std::span<const double> all);

// How many of its elements have each exponent (kExponents); empty where nobody counted.
std::vector<std::int64_t> exponents_of(const LookedAt& value, std::span<const double> all);

// Its shape in that run: where the outermost length is a symbol, what the number of elements says.
std::vector<std::int64_t> shape_of(const LookedAt& value, const TensorStatistics& statistics);

}  // namespace aloft::probe
