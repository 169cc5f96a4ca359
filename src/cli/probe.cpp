// aloft probe run RECIPE --out DIR
#include "base/log.h"
#include "base/output.h"
#include "cli/machine.h"
#include "cli/option_checks.h"
#include "cli/probe_compare.h"
#include "cli/product_rates.h"
#include "cli/shared_options.h"
#include "cli/verb.h"
#include "train/trainer.h"

namespace aloft::cli {
namespace {

struct Options {
  RecipeWords recipe;
  std::string task = "statistics", level, out;
  std::vector<std::int64_t> looked_at;
  std::optional<std::int64_t> threads;
  std::int64_t steps = 1;
};

ExitCode probe_run(const Options& o) {
  std::vector<Override> overrides = overrides_of(o.recipe);
  for (Override& set : overrides_of_probe(o.task + (o.level.empty() ? "" : ":" + o.level)))
    overrides.push_back(std::move(set));
  overrides.push_back({"train.steps", std::to_string(o.steps)});
  if (o.threads) overrides.push_back({"train.threads", std::to_string(*o.threads)});
  if (!o.looked_at.empty()) {
    std::string list;
    for (const std::int64_t step : o.looked_at)
      list += (list.empty() ? "" : ", ") + std::to_string(step);
    overrides.push_back({"probe.at", "[" + list + "]"});
  }
  if (const auto device = given_device())
    overrides.push_back({"train.device", "\"" + *device + "\""});
  const Recipe recipe = load_recipe(o.recipe.path, overrides);
  set_log_level(LogLevel::Warning);
  TrainOptions t;
  t.out = Path(o.out) / "run";
  t.probe_out = o.out;
  t.quiet = true;
  t.machine = machine_name();
  t.measure = [] { return device_rates(); };
  const TrainResult r = run_training(recipe, t);
  print_result("{} steps; what they held is in {}\n", r.steps, o.out);
  return r.exit;
}

}  // namespace

Action probe_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* run = app.add_subcommand("run", "make steps of a recipe, and write what they hold");
  CLI::App* compare = app.add_subcommand("compare", "say where two dumps part first");
  app.require_subcommand(1);
  app.set_help_flag();  // there are two things to do: their options are shown, too
  app.set_help_all_flag("-h,--help", "Print this help message and exit");
  add_recipe(*run, o->recipe);
  run->add_option("--task", o->task, "what is looked at")
      ->check(CLI::IsMember({"statistics"}))
      ->capture_default_str();
  run->add_option("--level", o->level,
                  "module or op: calls of modules and parameters, or every op (default: the "
                  "recipe's, or module)")
      ->check(CLI::IsMember({"module", "op"}));
  run->add_option("--out", o->out, "folder of the steps' folders, and of the run itself: run/")
      ->required();
  run->add_option("--steps", o->steps, "steps that are made")
      ->check(at_least(1))
      ->capture_default_str();
  run->add_option("--at", o->looked_at,
                  "steps that are written, counted from 0 (default: the recipe's, or all)")
      ->delimiter(',');
  add_threads(*run, o->threads);
  add_device(*run);
  return [o, run, compares = probe_compare(*compare)] {
    return run->parsed() ? probe_run(*o) : compares();
  };
}

}  // namespace aloft::cli
