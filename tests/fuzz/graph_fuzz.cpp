// Graph text from any bytes: refused with an error, or a graph that prints and parses back. A graph
// that the verifier takes stays valid through the passes that clean up, which come to an end, and
// through those that fuse and reorder; what comes out, where its sizes fit into memory, lowers to a
// Plan without overlaps that is written and read back.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "graph/graph.h"
#include "ops/op.h"
#include "ops/verify_graph.h"
#include "passes/lower_to_plan.h"
#include "passes/pass.h"

namespace {

void must(bool ok) {
  if (!ok) __builtin_trap();
}

void must_print_and_parse_back(const aloft::Graph& graph) {
  const std::string text = print(graph);
  must(print(aloft::parse_graph(text)) == text);
}

// Each pass is applied until nothing changes; together they may need some rounds.
void clean_up(aloft::Graph& graph) {
  bool changed = true;
  for (int round = 0; changed; ++round) {
    must(round < 100);
    changed = false;
    for (const aloft::Pass* pass : {&aloft::simplify, &aloft::cse, &aloft::dce}) {
      changed |= pass->run(graph, {}).changed;
      verify_graph(graph);
    }
  }
}

// A back end with a kernel for every op, of which some write over their operands and some need
// scratch.
aloft::PassContext context_of_any_kernel() {
  aloft::PassContext context;
  context.threads = 2;
  context.choose = [](const aloft::CallSpec& call) {
    aloft::KernelChoice choice;
    choice.kernel = "any." + call.op.str();
    choice.is_view = call.op == aloft::Name("reshape");
    if (aloft::op_named(call.op).fusion == aloft::Fusion::Elementwise)
      for (int i = 0; i < static_cast<int>(call.in.size()); ++i)
        if (call.in[i] == call.out[0]) choice.in_place.emplace_back(i, 0);
    if (call.in.size() > 2) choice.scratch_bytes = 192;
    return choice;
  };
  return context;
}

bool has_gradients(const aloft::Graph& graph) {
  for (std::uint32_t n : graph.order())
    if (graph.node(n).op == aloft::Name("gradients")) return true;
  return false;
}

void fuse(aloft::Graph& graph, const aloft::PassContext& context) {
  for (const aloft::Pass* pass :
       {&aloft::fuse_head_gradient, &aloft::fuse_embedding_gradient, &aloft::fuse_norm,
        &aloft::fuse_elementwise, &aloft::hoist_updates}) {
    pass->run(graph, context);
    verify_graph(graph);
  }
}

// Sizes that no plan file may state are left out: they are lowered only to be refused.
bool fits_a_plan(const aloft::Graph& graph) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 40;
  try {
    for (std::uint32_t n : graph.order())
      for (const aloft::TensorType& t : graph.node(n).out)
        if (t.max_bytes() > kMostBytes) return false;
  } catch (const aloft::UserError&) {
    return false;
  }
  return true;
}

void lower(const aloft::Graph& graph, const aloft::PassContext& context) {
  aloft::Lowered lowered = lower_to_plan(graph, context);
  aloft::Plan plan;
  plan.backend = "any";
  plan.threads = context.threads;
  add_program(plan, std::move(lowered.program), lowered.state);
  verify(plan);
  const std::string text = to_json(plan);
  must(to_json(aloft::plan_from_json(text)) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  aloft::Graph graph;
  try {
    graph = aloft::parse_graph({reinterpret_cast<const char*>(data), size});
  } catch (const aloft::UserError&) {
    return 0;
  }
  must_print_and_parse_back(graph);
  try {
    verify_graph(graph);
  } catch (const aloft::UserError&) {
    return 0;
  }
  try {
    aloft::mark_taps.run(graph, {});
  } catch (const aloft::UserError&) {  // a result has a tap's name
  }
  clean_up(graph);
  must_print_and_parse_back(graph);
  if (has_gradients(graph)) return 0;
  const aloft::PassContext context = context_of_any_kernel();
  fuse(graph, context);
  must_print_and_parse_back(graph);
  if (fits_a_plan(graph)) lower(graph, context);
  return 0;
}
