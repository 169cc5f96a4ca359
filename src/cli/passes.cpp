// aloft passes [--run NAMES GRAPH]: the compiler's passes, or a graph's text behind some of them.

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "frontend/programs.h"
#include "ops/verify_graph.h"
#include "passes/pipeline.h"
#include "runtime/current_device.h"

namespace aloft::cli {
namespace {

ExitCode passes(bool as_json) {
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows{
      {"", "pass", "needs", "gives", "keeps bits", "what it does"}};
  int number = 0;
  for (const Pass* p : compile_pipeline().passes()) {
    ++number;
    const std::string gives(p->gives ? name_of(*p->gives) : "");
    list.push_back({{"number", number},
                    {"name", p->name},
                    {"summary", p->summary},
                    {"needs", name_of(p->needs)},
                    {"gives", p->gives ? nlohmann::json(gives) : nlohmann::json(nullptr)},
                    {"keeps_bits", p->keeps_bits}});
    rows.push_back({std::to_string(number), std::string(p->name), std::string(name_of(p->needs)),
                    gives.empty() ? "the same" : gives, p->keeps_bits ? "yes" : "no",
                    std::string(p->summary)});
  }
  if (as_json)
    print_result("{}\n", list.dump(2));
  else
    print_result("pipeline {}\n{}", compile_pipeline().name(), table(rows));
  return ExitCode::Ok;
}

struct Options {
  bool json = false;
  std::string run, graph;
};

const Pass& pass_named(std::string_view name) {
  std::vector<std::string> known;
  for (const Pass* p : compile_pipeline().passes()) {
    if (p->name == name) return *p;
    known.emplace_back(p->name);
  }
  UserError e("E0317", "there is no pass '" + std::string(name) + "'");
  if (const std::string near = nearest_name(std::string(name), known); !near.empty())
    e.add_line("try", near);
  throw e;
}

// The graph of a file behind the passes, as text; the back end is this machine's.
ExitCode run(const Options& o) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 28;
  Graph graph = parse_graph(read_file(o.graph, kLimit));
  verify_graph(graph);
  PassContext context;
  context.choose = chooser(current_device());
  for (std::string_view name : split(o.run, ',')) {
    pass_named(trim(name)).run(graph, context);
    verify_graph(graph);
  }
  print_result("{}", print(graph));
  return ExitCode::Ok;
}

}  // namespace

Action passes_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_json(app, o->json, "a list of objects, in the order in which they run");
  auto* run_option = app.add_option("--run", o->run, "run these passes, such as simplify,cse,dce");
  app.add_option("graph", o->graph, "a file with a graph's text, as `explain graph` prints it")
      ->needs(run_option);
  run_option->needs("graph");
  run_option->excludes("--json");
  add_device(app);
  return [o] { return o->run.empty() ? passes(o->json) : run(*o); };
}

}  // namespace aloft::cli
