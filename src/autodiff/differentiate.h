// Reverse-mode differentiation of a recorded program. Works on any graph whose emitter can hand out
// handles: while compiling it appends the backward nodes to the graph, in eager mode the same calls
// execute at once. The appended nodes are ordinary nodes, so gradients can be differentiated again.
//
//   %2 = matmul(%0, %1) ...            %2 = matmul(%0, %1) ...
//   %3 = sum(%2) ...            ->     %3 = sum(%2) ...
//                                      %4 = broadcast(%seed) ...   phase="backward"
//                                      %5 = matmul(%4, %1) {transpose_b=true} phase="backward"
//
// One sweep from `target` backwards over the nodes that lie between `wrt` and `target`; cotangents
// of a value with several readers are added in the reverse order of its readers. An op whose
// gradient is its body's has the body recorded again, and the sweep goes through that.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/tensor.h"

namespace aloft {

// The place of what computes gradients that were asked for at `where`.
Where where_of_gradients(Where where);

// Looks at the gradients of some values when they are complete, wherever the sweep comes by: what
// it returns goes on in their place.
struct Lookout {
  std::set<ValueId> values;
  std::function<Tensor(ValueId, const Tensor& gradient)> see;
};

// A gradient that somebody looks at, of those that are computed anyway: of a value, or as much of
// it as comes through one module and those below, of the type of a cast that several modules read.
struct GradientView {
  ValueId value;
  std::optional<std::string> through = {};  // the module's path; nullopt: the whole gradient
  Tensor gradient = {};  // receives it; undefined where none is computed, or no value is just that
};

// Gradients of `target` (float) times `seed` (same shape) with respect to each of `wrt`. An entry
// is undefined where target does not depend on it differentiably. The views receive theirs.
std::vector<Tensor> differentiate(const Graph& graph, Emitter& emitter, const Tensor& target,
                                  const Tensor& seed, std::span<const Tensor> wrt,
                                  const Lookout& lookout = {}, std::span<GradientView> views = {});

}  // namespace aloft
