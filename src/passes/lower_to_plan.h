// From an executable graph to a program of the Plan: kernels chosen, buffers shared and placed.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "passes/pass.h"
#include "plan/plan.h"

namespace aloft {

struct Lowered {
  Program program;
  std::vector<StateSlot> state;  // every variable that the graph reads or updates
};

// The variable that a `state` node reads, but for where it lies.
StateSlot slot_of(const Node& state);

// Node by node, in the graph's order:
// - a view shares its operand's buffer; no instruction;
// - a result takes over the buffer of an operand that dies here, where the kernel allows it;
// - an update is written straight into its variable's buffer where no later node reads the old
//   value, else copied there at the end;
// - everything else, gradients too, lives in the activation arena from its first write to its last
//   read, kernels' scratch during its instruction (docs/decisions/0012).
Lowered lower_to_plan(const Graph& graph, const PassContext& context);

}  // namespace aloft
