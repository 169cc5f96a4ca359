// aloft explain precision|plan|graph|kernels RECIPE: compiles the recipe's own programs and shows
// what the compiler decided, without training.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/cpu/measure.h"
#include "base/log.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "data/tokenizer.h"
#include "frontend/programs.h"
#include "graph/graph.h"
#include "passes/pass.h"
#include "plan/plan.h"
#include "train/run_record.h"
#include "train/session.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string recipe, program = "train";
  std::vector<std::string> set;
  bool json = false;
};

// Pieces of the recipe's tokenizer, without reading text where the recipe says enough. Where the
// text is not there the answer hardly depends on it: another vocabulary is taken, and that is said.
std::int64_t vocab_of(const Recipe& recipe) {
  const TokenizerSpec& t = recipe.data.tokenizer;
  if (recipe.model.vocab > 0) return 0;
  const bool is_text = recipe.data.train_tokens.empty();
  if (is_text && t.kind == "byte") return 256;
  if (is_text && t.kind == "bpe" && t.path.empty()) return t.vocab;
  try {
    return vocabulary_of(recipe, open_data(recipe, false));
  } catch (const DataError& e) {
    if (e.code() != "E0510" && e.code() != "E0601") throw;
    constexpr std::int64_t kAssumed = 256;
    log_warning(
        "the recipe's data is not there, so its vocabulary is taken as {} ids; "
        "--set 'data.text=[\"FILE\"]' or --set model.vocab=N for the true one ({})",
        kAssumed, e.headline());
    return kAssumed;
  }
}

struct Explained {
  Session session;
  std::unique_ptr<Runner> runner;
  const Programs& programs() const { return *runner->programs(); }
};

Explained compile_recipe(const Options& o) {
  std::vector<Override> overrides;
  for (const std::string& s : o.set) overrides.push_back(parse_override(s));
  Recipe recipe = load_recipe(o.recipe, overrides);
  recipe.train.mode = "graph";
  std::function<MeasuredRates()> measure;
  if (!recipe.precision.is_resolved())  // only `auto` needs numbers here
    measure = [] {
      const cpu::MatmulRates r = cpu::measure_matmul_rates();
      return MeasuredRates{r.f32_gflops, r.bf16_gflops};
    };
  Explained e{open_session(recipe, vocab_of(recipe), measure), nullptr};
  e.runner = make_runner(e.session);
  if (!e.programs().plan().find(o.program)) {
    std::vector<std::string> names;
    for (const Program& p : e.programs().plan().programs) names.push_back(p.name);
    throw UserError("E0720", "the recipe has no such program")
        .saw(o.program)
        .need("one of: " + fmt::format("{}", fmt::join(names, ", ")));
  }
  return e;
}

ExitCode precision(const Options& o) {
  const Explained e = compile_recipe(o);
  const json decisions = decisions_record(e.programs().decisions(o.program));
  if (o.json) {
    fmt::print("{}\n", decisions.dump(2));
    return ExitCode::Ok;
  }
  std::vector<std::vector<std::string>> rows{
      {"op", "place", "phase", "compute", "accumulate", "store", "reason"}};
  for (const json& d : decisions)
    rows.push_back(
        {d["op"], d["path"], d["phase"], d["compute"], d["accumulate"], d["store"], d["reason"]});
  fmt::print("{}\n{}", print_precision(e.session.recipe.precision), table(rows));
  return ExitCode::Ok;
}

ExitCode plan(const Options& o) {
  const Explained e = compile_recipe(o);
  const Plan& p = e.programs().plan();
  fmt::print("{}\n", o.json ? to_json(p) : print(p));
  return ExitCode::Ok;
}

ExitCode graph(const Options& o) {
  const Explained e = compile_recipe(o);
  const std::string text = print(e.programs().graph(o.program));
  if (!o.json) {
    fmt::print("{}\n", text);
    return ExitCode::Ok;
  }
  json passes = json::array();
  for (const PassTime& t : e.programs().pass_times(o.program))
    passes.push_back({{"pass", t.pass}, {"seconds", t.seconds}, {"changed", t.report.changed}});
  fmt::print("{}\n", json{{"program", o.program}, {"graph", text}, {"passes", passes}}.dump(2));
  return ExitCode::Ok;
}

ExitCode kernels(const Options& o) {
  const Explained e = compile_recipe(o);
  const Program& program = *e.programs().plan().find(o.program);
  // Calls that differ in their place alone are one row.
  struct Row {
    const Instruction* first;
    int count = 0;
  };
  std::map<std::string, std::size_t> known;
  std::vector<Row> rows;
  for (const Instruction& i : program.instructions) {
    std::string key = i.kernel + i.call.op.str();
    for (const BufferRef& r : i.in) key += " " + r.type.str();
    for (const BufferRef& r : i.out) key += " " + r.type.str();
    if (!i.members.empty()) key += i.call.attrs.str();
    const auto [at, is_new] = known.try_emplace(key, rows.size());
    if (is_new) rows.push_back({&i});
    ++rows[at->second].count;
  }
  // What the fusing passes said of ops that they left alone.
  std::map<std::string, std::string> alone;
  for (const PassTime& t : e.programs().pass_times(o.program))
    if (t.pass == fuse_elementwise.name)
      for (const Remark& r : t.report.remarks) alone[r.place] = r.text;
  for (const Instruction& i : program.instructions)
    if (!i.members.empty()) alone.erase(i.identity);
  const auto types = [](const std::vector<BufferRef>& list) {
    std::vector<std::string> out;
    out.reserve(list.size());
    for (const BufferRef& r : list) out.push_back(r.type.str());
    return out;
  };
  json list = json::array();
  for (const Row& r : rows) {
    const Instruction& i = *r.first;
    list.push_back({{"op", i.call.op.str()},
                    {"kernel", i.kernel},
                    {"calls", r.count},
                    {"phase", name_of(i.phase)},
                    {"first", i.identity},
                    {"in", types(i.in)},
                    {"out", types(i.out)},
                    {"refused", i.refusals},
                    {"members", i.members}});
    const auto why_alone = alone.find(i.identity);
    if (why_alone != alone.end()) list.back()["alone"] = why_alone->second;
    if (o.json) continue;
    fmt::print("{:>4} x {:<28} {}  ({}) -> ({})\n", r.count, i.kernel, i.identity,
               fmt::join(types(i.in), ", "), fmt::join(types(i.out), ", "));
    if (!i.members.empty()) fmt::print("       in one loop: {}\n", fmt::join(i.members, ", "));
    for (const std::string& why : i.refusals) fmt::print("       refused: {}\n", why);
    if (why_alone != alone.end()) fmt::print("       {}\n", why_alone->second);
  }
  if (o.json) fmt::print("{}\n", list.dump(2));
  return ExitCode::Ok;
}

struct Subject {
  const char *name, *summary;
  ExitCode (*run)(const Options&);
  bool one_program;
};

constexpr Subject kSubjects[] = {
    {"precision", "The type chosen for every op, and why", precision, true},
    {"plan", "Instructions, buffers, offsets, lifetimes, and what makes the peak", plan, false},
    {"graph", "The graph that the passes made of the model", graph, true},
    {"kernels", "Which kernel runs each op, and which refused, and why", kernels, true},
};

}  // namespace

Action explain_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  auto chosen = std::make_shared<ExitCode (*)(const Options&)>(nullptr);
  app.require_subcommand(1);
  for (const Subject& s : kSubjects) {
    CLI::App* sub = app.add_subcommand(s.name, s.summary);
    sub->add_option("recipe", o->recipe, "recipe file (*.toml)")->required();
    sub->add_option("--set", o->set, "KEY=VALUE: overrides a key of the recipe; repeatable");
    if (s.one_program)
      sub->add_option("--program", o->program, "train, evaluate or accumulate")
          ->capture_default_str();
    sub->add_flag("--json", o->json, "JSON");
    sub->footer(fmt::format("Example:\n  aloft explain {} recipes/gpt-cpp.toml", s.name));
    sub->callback([chosen, run = s.run] { *chosen = run; });
  }
  return [o, chosen] { return (*chosen)(*o); };
}

}  // namespace aloft::cli
