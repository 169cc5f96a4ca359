// aloft train RECIPE
#include <fmt/format.h>

#include <optional>

#include "base/log.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/machine.h"
#include "cli/option_checks.h"
#include "cli/product_rates.h"
#include "cli/shared_options.h"
#include "cli/verb.h"
#include "observe/report/report.h"
#include "recipe/recipe.h"
#include "run/recorded_choices.h"
#include "run/validation_loss.h"
#include "tasks/loss_text.h"
#include "train/trainer.h"

namespace aloft::cli {
namespace {

struct Options {
  RecipeWords recipe;
  std::string out, mode, probe;
  std::optional<std::string> choices;
  std::optional<std::int64_t> threads, profile;
  std::int64_t steps = -1;
  bool resume = false, force = false, print_config = false, quiet = false;
};

std::string summary(const TrainResult& r, std::string_view unit) {
  std::string text = fmt::format("steps {}", r.last_step);
  if (r.steps > 0 && r.last_loss) text += "  loss " + loss_text(*r.last_loss);
  if (r.validation) text += "  " + describe(*r.validation);
  if (r.steps > 0) text += fmt::format("  {:.0f} {}/s in the median step", r.tokens_per_s, unit);
  return text + fmt::format("  skipped {}", r.skipped);
}

// The last model is not always the one to take.
void print_best(const BestValidation& best, const Recipe& recipe, const Path& run) {
  const bool is_kept = recipe.train.keep_best > 0 || recipe.train.keep_checkpoints == 0;
  const bool writes_text = static_cast<bool>(model_spec(recipe).family->make_causal_lm);
  print_result("best validation loss {} at step {}{}\n", loss_text(best.loss), grouped(best.step),
               is_kept && writes_text
                   ? ": aloft generate " + in_shell(run.string()) + " --checkpoint best"
                   : "");
}

// Without steps into folders that are not there yet and out again: those would be made on the way.
Path without_detours(const Path& path) {
  Path out;
  for (const Path& part : path) {
    if (part == ".." && !out.empty() && !path_exists(out))
      out = out.parent_path();
    else if (part != ".")
      out /= part;
  }
  return out.empty() ? Path(".") : out;
}

ExitCode train(const Options& o) {
  std::vector<Override> overrides = overrides_of(o.recipe);
  if (o.steps >= 0) overrides.push_back({"train.steps", std::to_string(o.steps)});
  if (o.threads) overrides.push_back({"train.threads", std::to_string(*o.threads)});
  if (!o.mode.empty()) overrides.push_back({"train.mode", "\"" + o.mode + "\""});
  for (Override& set : overrides_of_probe(o.probe)) overrides.push_back(std::move(set));
  if (o.profile) overrides.push_back({"profile.steps", std::to_string(*o.profile)});
  if (const auto device = given_device())
    overrides.push_back({"train.device", "\"" + *device + "\""});
  const Recipe recipe = load_recipe(o.recipe.path, overrides);
  if (o.print_config) {
    print_result("{}", print_config(recipe));
    return ExitCode::Ok;
  }
  if (o.quiet) set_log_level(LogLevel::Warning);
  TrainOptions t;
  t.out = o.out.empty() ? Path("runs") / Path(o.recipe.path).stem() : without_detours(o.out);
  t.resume = o.resume;
  t.force = o.force;
  t.quiet = o.quiet;
  t.machine = machine_name();
  t.measure = [] { return device_rates(); };
  t.rates = [] { return rates_of_device(); };
  if (o.choices) t.choices = choices_of_run(*o.choices);
  t.report = write_report;
  const TrainResult r = run_training(recipe, t);
  print_result("{}\n", fit_for(Output::Out, summary(r, task_kind(recipe).unit)));
  if (r.best && r.best->step != r.last_step) print_best(*r.best, recipe, t.out);
  print_result("run directory {}\n", t.out.string());
  print_result("{}", r.profile);
  if (!r.sample.empty()) print_result("sample:\n{}\n", r.sample);
  return r.exit;
}

}  // namespace

Action train_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_recipe(app, o->recipe);
  app.add_option("--steps", o->steps, "steps of the run (train.steps)")->check(at_least(0));
  app.add_option("--out", o->out, "run directory (default: runs/<recipe's name>)");
  auto* resume = app.add_flag("--resume", o->resume,
                              "go on from the newest whole checkpoint, if there is one");
  app.add_flag("--force", o->force,
               "go on although the data is another one; begin anew without checkpoints")
      ->needs(resume);
  app.add_option("--choices", o->choices,
                 "a run: what its precision was chosen by is not measured again")
      ->excludes(resume);
  add_mode(app, o->mode);
  add_threads(app, o->threads);
  add_probe(app, o->probe, true);
  add_profile(app, o->profile);
  app.add_flag("--print-config", o->print_config,
               "print the resolved recipe with the origin of each value, and stop");
  add_quiet(app, o->quiet);
  add_device(app);
  return [o] { return train(*o); };
}

}  // namespace aloft::cli
