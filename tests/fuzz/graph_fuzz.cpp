// Graph text from any bytes: refused with an error, or a graph that prints and parses back. A graph
// that the verifier takes stays valid through the passes that clean up, which come to an end.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "graph/graph.h"
#include "ops/verify_graph.h"
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
  clean_up(graph);
  must_print_and_parse_back(graph);
  return 0;
}
