// A small program of op calls as text: what a fused call computes. It is an attribute, so that
// graphs, plans and files carry it without knowing its ops.
//
//   %3 = mul(%0, %1) : bf16; %4 = gelu_tanh(%3) : bf16; %5 = sum(%4) {axes=(0)} : bf16;
//   return %4, %5
//
// Values are numbered: first the call's inputs, then one a step, in order. A step states its
// result's element type, so that a kernel that cannot infer types knows where it rounds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/name.h"
#include "types/attrs.h"
#include "types/dtype.h"

namespace aloft {

struct ProgramStep {
  Name op;
  Attrs attrs;
  std::vector<int> in;  // inputs and earlier steps
  DType dtype = DType::F32;

  friend bool operator==(const ProgramStep&, const ProgramStep&) = default;
};

struct StepProgram {
  int inputs = 0;
  std::vector<ProgramStep> steps;
  std::vector<int> out;  // the numbers of the steps whose results are the call's outputs, distinct

  int values() const { return inputs + static_cast<int>(steps.size()); }
  // The step behind value `v`, or null for an input.
  const ProgramStep* step_of(int v) const { return v < inputs ? nullptr : &steps[v - inputs]; }
  friend bool operator==(const StepProgram&, const StepProgram&) = default;
};

// More would not stay in the first cache, and text from outside must end somewhere.
inline constexpr int kMostSteps = 64;

// The op that carries a program in its attribute `program`.
inline constexpr std::string_view kFusedOp = "fused";

std::string print(const StepProgram& program);
// What print() gives. UserError E0106 for text that is no program of `inputs` inputs: a number
// that is not defined before, an output that is an input or named twice, more than kMostSteps.
StepProgram parse_step_program(std::string_view text, int inputs);

}  // namespace aloft
