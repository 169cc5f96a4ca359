// aloft explain precision|plan|graph|kernels RECIPE: compiles the recipe's own programs, or those
// of a model by name, and shows what the compiler decided, without training.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/bench_step.h"
#include "cli/explain_kernels.h"
#include "cli/product_rates.h"
#include "cli/recipe_subject.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "data/tokenizer.h"
#include "frontend/programs.h"
#include "graph/graph.h"
#include "passes/pass.h"
#include "plan/plan.h"
#include "plan/summary.h"
#include "precision/reason.h"
#include "precision/recipe_words.h"
#include "recipe/memory_need.h"
#include "recipe/recipe_unused.h"
#include "run/recorded_choices.h"
#include "run/run_directory.h"
#include "runtime/current_device.h"
#include "sources/source_kind.h"
#include "train/checkpoint_copy.h"
#include "train/run_record.h"
#include "train/session.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

struct Options {
  RecipeWords recipe;
  std::string precision, program = "train";
  bool each = false, summary = false, json = false;
};

struct Explained {
  PrecisionRecipe precision;
  Session session;
  std::unique_ptr<Runner> runner;
  std::unique_ptr<BenchSubject> model;  // one by name, instead of a recipe's
  const Choices& choices() const { return model ? model->choices() : session.choices; }
  const Programs& programs() const { return model ? model->programs() : *runner->programs(); }
};

// What of a run alone is shown: the copy for checkpoints is in its memory.
bool is_read_here(std::string_view key) {
  return key == "train.checkpoint_copy" || is_read_by_a_step(key);
}

void compile_recipe(const Options& o, Explained& e) {
  std::vector<Override> overrides;
  if (!o.precision.empty()) overrides.push_back({"precision", "\"" + o.precision + "\""});
  for (Override& given : overrides_of(o.recipe)) overrides.push_back(std::move(given));
  Recipe recipe = load_recipe(o.recipe.path, overrides);
  use_device_of(recipe);
  need_compiled(recipe);
  refuse_unread(recipe, is_read_here, "a step is compiled");
  settle_length_without_training(recipe);
  std::function<MeasuredRates()> measure;
  if (!recipe.precision.is_resolved())  // only `auto` needs numbers here
    measure = [] { return shown_product_rates(); };
  e.session =
      open_session(recipe, source_of(recipe).facts(recipe), measure, {}, batches_of(recipe));
  e.precision = e.session.recipe.precision;
  e.runner = make_runner(e.session);
}

// A model that `aloft bench step` knows by name, as it is timed there.
void compile_model(const Options& o, Explained& e) {
  BenchOptions bench;
  bench.recipe = o.recipe;
  bench.precision = o.precision;
  e.model = open_bench(bench);
  e.precision = e.model->precision();
}

// The runner points into the session, so the whole stays where it is made.
std::unique_ptr<Explained> compile(const Options& o) {
  auto made = std::make_unique<Explained>();
  Explained& e = *made;
  if (o.recipe.path.ends_with(".toml"))
    compile_recipe(o, e);
  else
    compile_model(o, e);
  if (!e.programs().plan().find(o.program)) {
    std::vector<std::string> names;
    for (const Program& p : e.programs().plan().programs) names.push_back(p.name);
    throw UserError("E0720", "the recipe has no such program")
        .saw(o.program)
        .need("one of: " + fmt::format("{}", fmt::join(names, ", ")));
  }
  return made;
}

// What the choice of types for layers went by, in the words of a reason: nothing for a layer that
// the recipe lists itself.
std::string measured_reason(const json& decision, const PrecisionRecipe& recipe,
                            const MeasuredChoice& choice) {
  const std::string layer(listed_layer(decision.at("path").get<std::string>()));
  const auto figures = choice.figures.find(layer);
  std::vector<RecipeMistake> mistakes;
  const PrecisionRecipe named = parse_precision(choice.value, mistakes);
  const PrecisionRecipe asked = parse_precision(choice.asked, mistakes);
  if (figures == choice.figures.end() || !mistakes.empty() ||
      !glob_match_any(named.fp32_layers, layer))
    return "";
  const std::string low(recipe_word(recipe.low)),
      budget = fmt::format("{:g} %", 100 * asked.error_budget);
  double largest = 0;
  for (const auto& [name, error] : figures->second)
    if (name.starts_with(low + " ")) largest = std::max(largest, error);
  if (!std::isfinite(largest)) return "measured: " + low + " overflows";
  if (largest > asked.error_budget)
    return fmt::format("measured: {:.2g} % in {}, above the budget {}", 100 * largest, low, budget);
  return "measured: no faster type within the budget " + budget;
}

// Which key of the recipe denies or allows an op, and where it was set.
std::string reason_of(const json& decision, const PrecisionRecipe& recipe,
                      const MeasuredChoice& choice, const Recipe* from) {
  std::string reason = decision.at("reason");
  const std::optional<Reason> why = parse_reason(reason);
  if (why == Reason::WideLayer)
    if (std::string measured = measured_reason(decision, recipe, choice); !measured.empty())
      return measured;
  reason = in_recipe_words(reason);
  const bool denied = why == Reason::Denied;
  if (!denied && why != Reason::Allowed) return reason;
  const auto& ops = denied ? recipe.deny_ops : recipe.allow_ops;
  const bool by_op = glob_match_any(ops, decision.at("op").get<std::string>());
  const std::string key = std::string(denied ? "deny_" : "allow_") + (by_op ? "ops" : "params");
  reason += fmt::format(" ({} = {}", key,
                        join(by_op    ? ops
                             : denied ? recipe.deny_params
                                      : recipe.allow_params,
                             ", "));
  if (from)
    if (const auto it = from->origin.find("precision." + key); it != from->origin.end())
      reason += ", " + it->second;
  return reason + ")";
}

bool is_run(const Options& o) { return path_exists(Path(o.recipe.path) / "run.json"); }

// What a run decided when it was compiled, as its record says.
json decisions_of_run(const Options& o, PrecisionRecipe& precision, Choices& choices) {
  if (!o.precision.empty() || !overrides_of(o.recipe).empty() || o.program != "train")
    throw UserError("E0724", "a run has decided already")
        .at(o.recipe.path)
        .saw("an option that would have it compiled otherwise")
        .advice("name the recipe instead");
  const json record = read_run_record(Path(o.recipe.path) / "run.json");
  const auto decisions = record.find("precision_decisions");
  if (decisions == record.end() || !decisions->is_array())
    throw UserError("E0723", "the run's record holds no decisions")
        .at(o.recipe.path)
        .saw("a run in eager mode, or of a program before")
        .advice("name the recipe instead");
  precision = parse_precision(record.value("policy", ""));
  choices = recorded_choices(record, o.recipe.path);
  return *decisions;
}

// What was measured of the layers (adaptive precision), and the type that each has.
std::string table_of_layers(const Figures& figures, const PrecisionRecipe& recipe) {
  if (figures.empty()) return "";
  std::vector<std::string> head = {"layer", "type"};
  for (const auto& [layer, errors] : figures)
    for (const auto& [name, error] : errors)
      if (std::ranges::find(head, name) == head.end()) head.push_back(name);
  std::vector<std::vector<std::string>> rows{head};
  for (const auto& [layer, errors] : figures) {
    std::vector<std::string> row = {
        layer, std::string(recipe_word(recipe.type_in(Phase::Forward, layer)))};
    for (std::size_t i = row.size(); i < head.size(); ++i) {
      const auto it = errors.find(head[i]);
      row.push_back(it == errors.end()           ? ""
                    : !std::isfinite(it->second) ? "overflow"
                                                 : fmt::format("{:.3f} %", 100 * it->second));
    }
    rows.push_back(std::move(row));
  }
  return "measured errors, largest of a layer's results (forward) and gradients (backward):\n" +
         table(rows) + "\n";
}

// What was measured of the op's layer, in its phase: "errors": {"bf16": 0.003, "fp16": "inf"}.
void add_errors(const Figures& figures, json& decision) {
  const std::string path = decision["path"], phase = decision["phase"];
  const auto layer = figures.find(std::string(listed_layer(path)));
  if (layer == figures.end()) return;
  for (const auto& [name, error] : layer->second)
    if (const auto at = name.find(" " + phase); at != std::string::npos)
      decision["errors"][name.substr(0, at)] = std::isfinite(error) ? json(error) : json("inf");
}

ExitCode precision(const Options& o) {
  PrecisionRecipe recipe;
  Choices choices;
  std::unique_ptr<Explained> e;
  json decisions;
  if (is_run(o)) {
    decisions = decisions_of_run(o, recipe, choices);
  } else {
    e = compile(o);
    recipe = e->precision;
    choices = e->choices();
    decisions = decisions_record(e->programs().decisions(o.program));
  }
  const auto chosen = choices.all().find(std::string(kPrecisionChoice));
  const MeasuredChoice choice = chosen == choices.all().end() ? MeasuredChoice() : chosen->second;
  const Figures& figures = choice.figures;
  for (json& d : decisions)
    for (const char* key : {"compute", "accumulate", "store"})
      d[key] = in_recipe_words(d[key].get<std::string>());
  if (o.json) {
    for (json& d : decisions) {
      d["reason"] = in_recipe_words(d["reason"].get<std::string>());
      add_errors(figures, d);
    }
    print_result("{}\n", decisions.dump(2));
    return ExitCode::Ok;
  }
  const Recipe* from = e && !e->model ? &e->session.recipe : nullptr;
  std::vector<std::vector<std::string>> rows{
      {"op", "place", "phase", "compute", "accumulate", "store", "reason"}};
  for (const json& d : decisions)
    rows.push_back({d["op"], d["path"], d["phase"], d["compute"], d["accumulate"], d["store"],
                    reason_of(d, recipe, choice, from)});
  print_result("{}\n{}{}", shown_precision(recipe), table_of_layers(figures, recipe), table(rows));
  return ExitCode::Ok;
}

// Whether the machine has what a run takes, and how much that is: what others leave free at the
// moment would make the text of one plan another one each time.
std::string fit_text(std::uint64_t bytes, bool fits) {
  const MachineMemory memory = process_memory();
  const std::string name = current_device().name();
  if (memory.total == 0 || name != "cpu")
    return fmt::format("{} {}\n", fits ? "fits on" : "does not fit on", name);
  return fmt::format("{}: it takes {} of {}\n", fits ? "fits" : "does not fit", human_bytes(bytes),
                     human_bytes(memory.total));
}

ExitCode plan(const Options& o) {
  const auto e = compile(o);
  const Plan& p = e->programs().plan();
  std::size_t copy = 0;  // a run's alone
  if (!e->model)
    copy = checkpoint_copy_bytes(e->session.recipe, e->session.model(), *e->session.optimizer, p);
  const bool fits = warn_of_memory_for(p, kLessMemory, copy);
  if (o.json) {
    json plan = parse_json(to_json(p));
    if (copy > 0) plan["checkpoint_copy_bytes"] = copy;
    print_result("{}\n", copy > 0 ? json_text(plan, 1) : to_json(p));
    return ExitCode::Ok;
  }
  std::string said;
  if (copy > 0)
    said = fmt::format("a copy of the state for checkpoints: {}; a run holds {} with it\n",
                       human_bytes(copy), human_bytes(p.peak_bytes() + copy));
  said += fit_text(p.peak_bytes() + copy, fits);
  print_result("{}{}\n", said, fitted(o.summary ? print_summary(p) : print(p)));
  return ExitCode::Ok;
}

ExitCode graph(const Options& o) {
  const auto e = compile(o);
  const std::string text = print(e->programs().graph(o.program));
  if (!o.json) {
    print_result("{}\n", text);
    return ExitCode::Ok;
  }
  json passes = json::array();
  for (const PassTime& t : e->programs().pass_times(o.program))
    passes.push_back({{"pass", t.pass}, {"seconds", t.seconds}, {"changed", t.report.changed}});
  print_result("{}\n", json{{"program", o.program}, {"graph", text}, {"passes", passes}}.dump(2));
  return ExitCode::Ok;
}

ExitCode kernels(const Options& o) {
  const auto e = compile(o);
  explain_kernels(e->programs(), o.program, o.each, o.json);
  return ExitCode::Ok;
}

struct Subject {
  const char *name, *summary, *json;
  ExitCode (*run)(const Options&);
  bool one_program;
};

constexpr Subject kSubjects[] = {
    {"precision", "The type chosen for every op, and why", "a list of objects", precision, true},
    {"plan", "Instructions, buffers, offsets, lifetimes, and what makes the peak", "the Plan", plan,
     false},
    {"graph", "The graph that the passes made of the model", "the text, and each pass's time",
     graph, true},
    {"kernels", "Which kernel runs each op, and which refused, and why", "a list of objects",
     kernels, true},
};

}  // namespace

Action explain_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  auto chosen = std::make_shared<ExitCode (*)(const Options&)>(nullptr);
  app.require_subcommand(1);
  for (const Subject& s : kSubjects) {
    CLI::App* sub = app.add_subcommand(s.name, s.summary);
    add_recipe(*sub, o->recipe,
               s.run == precision
                   ? "recipe (*.toml), model that aloft bench step knows by name, or run"
                   : "recipe file (*.toml), or a model that aloft bench step knows by name");
    add_precision(*sub, o->precision);
    if (s.one_program)
      sub->add_option("--program", o->program, "train, evaluate or accumulate")
          ->capture_default_str();
    if (s.run == kernels)
      sub->add_flag("--each", o->each, "a row for every call, not for every kind of call");
    add_device(*sub);
    add_json(*sub, o->json, s.json);
    if (s.run == plan)
      sub->add_flag("--summary", o->summary, "without the instructions and the buffers")
          ->excludes("--json");
    sub->footer(fmt::format("Example:\n  aloft explain {} recipes/gpt-cpp.toml", s.name));
    sub->callback([chosen, run = s.run] { *chosen = run; });
  }
  return [o, chosen] { return (*chosen)(*o); };
}

}  // namespace aloft::cli
