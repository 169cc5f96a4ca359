// The whole verifier: a graph's structure, and every node against its op's record. For graphs from
// text, and for tests of passes; the pipeline checks structure alone, because passes build nodes
// through inference.
#pragma once

#include "graph/graph.h"

namespace aloft {

// UserError E0316 with the node: an op that does not exist, attributes or operands that it does not
// take, types that are not those inferred, an input or variable of the wrong form, a use before the
// definition, an update of another type.
void verify_graph(const Graph& graph);

}  // namespace aloft
