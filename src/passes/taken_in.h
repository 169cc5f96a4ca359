// Values that a fusion takes in. A fused op never has them whole; whoever asked to see one gets it
// computed once more: by the op that computed it, from the same operands, which the fused op has.
//
//   %6 = layer_norm_grad(%0, ...)          fuse-norm leaves a note of the tap that is lost:
//   %7 = add(%5, %6)                  ->   %8 = layer_norm_grad_add(%5, %0, ...)
//   return dx=%7 tap:t=%6                  taps "taken-in:/layer_norm_grad.backward#0 of 1 2 3 as
//   t"
//                                          return dx=%8 lost:t
//
// and, behind everything that decides, take-statistics puts %6 in front of %8 again and the tap on
// it, so that the program that runs is the one without the tap, and an op more. What is in a note:
// the value, as a tap would call it; which operands of the fused op its op takes; the tap. A pass
// that fuses the fused op once more keeps these operands in their places.
//
// A product of matrices costs more than a look may: such a value is computed for a pattern that
// says its op or its name (`op:linear`, `head/linear#0`), and not for one that means all, as `*`.
#pragma once

#include <string_view>

#include "graph/graph.h"
#include "passes/pass.h"

namespace aloft {

// Whether a pattern of the graph's is such a note, and no request that somebody made.
bool is_note_of_fusion(std::string_view pattern);

// A note for each tap of node n, whose results nothing else reads any more: `fused` computes what
// it did, and has all that it takes. Nothing where an operand is not among those of `fused`.
void note_taken_in(Graph& graph, std::uint32_t n, std::uint32_t fused);

// Of what the notes say, all that is asked for, with its taps. Whether it changed anything.
bool show_taken_in(Graph& graph, const PassContext& context);

// Whether a tap that is lost would be there for a pattern that says its name.
bool is_shown_by_name(const Graph& graph, std::string_view tap);

}  // namespace aloft
