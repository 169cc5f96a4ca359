// The meaning of ops and graphs on host arrays, in double: the judge of every kernel and every
// pass.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "ops/host_array.h"
#include "ops/op.h"

namespace aloft {

using SymbolValues = std::map<Name, std::int64_t>;

// Replaces symbols by their values.
Dim bind_lengths(const Dim& d, const SymbolValues& values);
Shape bind_lengths(const Shape& s, const SymbolValues& values);
TensorType bind_lengths(const TensorType& t, const SymbolValues& values);
Attrs bind_lengths(const Attrs& a, const SymbolValues& values);  // shapes inside attributes

enum class EvalRounding {
  None,     // double all the way
  ToDType,  // every op's result is rounded to its element type
};

// One call. `attrs` without symbols; the arrays' shapes are the operands' shapes.
std::vector<HostArray> evaluate_op(const OpDef& op, const Attrs& attrs,
                                   std::span<const HostArray> in,
                                   EvalRounding rounding = EvalRounding::None);

struct GraphValues {
  std::map<Name, HostArray> outputs;
  std::map<Name, HostArray> updates;  // variables' values after the run
};

// A whole graph. `values` holds inputs by name and variables by id.
GraphValues interpret(const Graph& graph, const std::map<Name, HostArray>& values,
                      const SymbolValues& symbols = {}, EvalRounding rounding = EvalRounding::None);

}  // namespace aloft
