// What compiling makes of a traced graph: the program, and all that later readers ask about how it
// came to be. It has a text form, so that it can be kept (frontend/plan_cache.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "passes/casting_emitter.h"
#include "passes/lower_to_plan.h"
#include "passes/pipeline.h"
#include "passes/taps.h"

namespace aloft {

struct CompiledProgram {
  Graph graph;  // as lowered
  Lowered lowered;
  std::vector<PassTime> passes;           // that ran, and how long that took when they did
  std::vector<DecisionRecord> decisions;  // that they made
  std::vector<RefusedTap> refused_taps;
};

// Runs the passes and lowers what they give. `context.decisions` is not used. UserError E0326,
// E0327 as check_taps(), E0324 for what no kernel computes.
CompiledProgram compile_graph(Graph traced, PassContext context, const PipelineOptions& options);

// Text that compiled_from() reads back; empty where a name in it is not UTF-8, which JSON would
// change.
std::string text_of(const CompiledProgram& program, int threads);
// Nothing where the text is not what text_of() wrote, for any bytes: every index, offset, size and
// type is checked as those of a Plan are (plan/json.cpp).
std::optional<CompiledProgram> compiled_from(std::string_view text);

// Whether a program that was read is one for this trace on this device (same_program.cpp): its
// name, inputs, outputs and variables are those of `traced`, each call has the results that its op
// gives, and gets the kernel and the scratch that `choose` gives it here.
bool is_of(const CompiledProgram& program, const Graph& traced, const ChooseKernel& choose);

}  // namespace aloft
