// aloft probe run RECIPE --out DIR, aloft probe run MODEL --tokens F --out DIR
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/machine.h"
#include "cli/option_checks.h"
#include "cli/probe_acc_check.h"
#include "cli/probe_check_config.h"
#include "cli/probe_compare.h"
#include "cli/probe_model.h"
#include "cli/probe_redo.h"
#include "cli/product_rates.h"
#include "cli/shared_options.h"
#include "cli/verb.h"
#include "observe/probe/overflow.h"
#include "recipe/msprobe_config.h"
#include "runtime/threads.h"
#include "train/overflow_changes.h"
#include "train/trainer.h"
#include "train/written_file.h"

namespace aloft::cli {
namespace {

struct Options {
  RecipeWords recipe;
  std::string task, level, out, config;
  std::string tokens, precision;  // of a model
  std::vector<std::int64_t> looked_at;
  std::optional<std::int64_t> threads;
  std::optional<std::int64_t> steps;
};

// Whether the run went back behind the step, and made another one of its number.
bool is_undone(const nlohmann::ordered_json& found) { return found.contains("undone"); }

// Of the first step that stopped to be finite, what would have kept it so; into the file, too.
void try_changes(nlohmann::ordered_json& all, const Path& file, const Path& run) {
  auto& found = all.at("found");
  const auto first = std::find_if_not(found.begin(), found.end(), is_undone);
  if (first == found.end())
    return log_warning("no change of the recipe was tried: the run has gone back behind each step");
  try {
    const auto added = overflow_changes(run, *first);
    print_result("{}:\n{}", probe::step_text(first->at("step").get<std::int64_t>()),
                 overflow_changes_text(added));
    first->update(added);
    write_file_atomic(file, all.dump(1) + "\n");
  } catch (const EnvironmentError& e) {  // the step once more takes as much memory again
    log_warning("no change of the recipe was tried: {}", e.headline());
  } catch (const UserError& e) {
    if (e.code() != "E0862") throw;
    log_warning("no change of the recipe was tried: {}", e.headline());
  }
}

std::string steps_of(std::int64_t steps) {
  return fmt::format("{} step{}", steps, steps == 1 ? "" : "s");
}

// The first op of each step that stopped to be finite.
void print_overflows(const Path& file, const Path& run) {
  auto all = nlohmann::ordered_json::parse(read_file(file));
  const auto& found = all.at("found");
  if (found.empty())
    print_result("in {} everything was finite\n", steps_of(all.at("steps").get<std::int64_t>()));
  for (const auto& one : found)
    print_result("{}, loss scale {}{}{}: {}\n",
                 probe::step_text(one.at("step").get<std::int64_t>()),
                 one.at("loss_scale").get<double>(), one.at("skipped") ? ", skipped" : "",
                 is_undone(one) ? ", undone" : "", probe::overflow_text(one.at("first")));
  if (!found.empty()) try_changes(all, file, run);
}

std::string written_in(const Path& folder) {
  const auto written = read_written(folder);
  return written ? ": " + written->text() : std::string();
}

// Of a recipe's run, or of a model's pass over tokens: what it is asked for, and where it goes.
struct Asked {
  std::vector<Override> overrides;
  std::string out;
};

Asked asked_of(const Options& o) {
  Asked asked{overrides_of(o.recipe), o.out};
  std::vector<Override> of_config;
  if (!o.config.empty()) {
    const MsprobeConfig config = read_msprobe_config(o.config, o.task);
    of_config = config.probe;
    if (asked.out.empty()) asked.out = config.dump_path;
  }
  if (asked.out.empty())
    throw UserError("E0700", "where the steps' folders go is not said")
        .need("--out DIR, or a config.json with a dump_path");
  if (o.config.empty())
    for (Override& set : overrides_of_probe(o.task.empty() ? "statistics" : o.task))
      asked.overrides.push_back(std::move(set));
  if (!o.level.empty()) asked.overrides.push_back({"probe.level", '"' + o.level + '"'});
  if (!o.looked_at.empty()) {
    std::string list;
    for (const std::int64_t step : o.looked_at)
      list += (list.empty() ? "" : ", ") + std::to_string(step);
    asked.overrides.push_back({"probe.at", "[" + list + "]"});
  }
  asked.overrides = with_said(std::move(of_config), asked.overrides);
  return asked;
}

// What no pass over a saved model has.
void refuse_what_is_of_recipes(const Options& o) {
  const auto refuse = [](const std::string& option, const std::string& why) {
    throw UserError("E0700", "with --tokens one pass is made over a saved model")
        .saw(option + ": " + why)
        .need(
            "--out DIR; of the other options --task, --level, --config, --precision, --threads, "
            "--device, and --set of keys of [probe]");
  };
  if (!o.recipe.init.empty())
    refuse("--init " + o.recipe.init, "the model is the one that is named");
  for (const Override& set : overrides_of(o.recipe))
    if (!set.key.starts_with("probe."))
      refuse("--set " + set.key, set.key.starts_with("precision")
                                     ? "of a model it is --precision"
                                     : "a saved model has no such key");
  if (o.steps.value_or(1) != 1) refuse("--steps " + std::to_string(*o.steps), "there is one pass");
  if (o.task == "acc_check") refuse("--task acc_check", "it records calls of a recipe's steps");
}

// Steps that the run does not make are not looked at: one of them is refused where it was asked for
// `by_hand`; of a recipe's, or a config.json's, all.
void need_steps_to_look_at(const Recipe& recipe, bool by_hand) {
  const std::vector<std::int64_t>& at = recipe.probe.at;
  const std::int64_t steps = recipe.train.steps;
  const auto is_made = [&](std::int64_t step) { return step < steps; };
  if (at.empty() || recipe.probe.task == "structure") return;
  if (by_hand ? std::ranges::all_of(at, is_made) : std::ranges::any_of(at, is_made)) return;
  const std::int64_t last = std::ranges::max(at);
  throw UserError("E0700", "a step is to be looked at that is not made")
      .saw(fmt::format("step {}, counted from 0, of {} step{}", last, steps, steps == 1 ? "" : "s"))
      .advice(fmt::format("--steps {}, or another --at", last + 1));
}

// Of a model one pass forward and backward is looked at, whole.
ExitCode probe_run_model(const Options& o) {
  refuse_what_is_of_recipes(o);
  Asked asked = asked_of(o);
  asked.overrides.push_back({"train.steps", "1"});
  const Recipe recipe = parse_recipe("", "--tokens", asked.overrides);
  need_steps_to_look_at(recipe, !o.looked_at.empty());
  if (recipe.probe.task == "acc_check" || look_at(recipe.probe, 0) == Look::Nothing)
    throw UserError("E0700", "with --tokens nothing would be looked at")
        .saw("probe.task = " + in_quotes(recipe.probe.task))
        .need("statistics, tensor, overflow or structure");
  if (o.threads.value_or(0) > 0) host_threads().set_count(static_cast<int>(*o.threads));
  return probe_model({o.recipe.path, o.tokens, asked.out, o.precision, recipe.probe});
}

// How many steps are made where --steps does not say it: up to the last one that the command line
// or a config.json wants to see. What a recipe has for its training is no wish for a long probe;
// steps of it that are not made are said.
std::int64_t steps_asked(const Options& o, const std::vector<Override>& overrides) {
  if (o.steps) return *o.steps;
  std::vector<Override> first = overrides;
  first.push_back({"train.steps", "1"});
  const ProbeSection probe = load_recipe(o.recipe.path, first).probe;
  if (probe.at.empty() || probe.task == "structure") return 1;
  const auto is_asked = [](const Override& set) { return set.key == "probe.at"; };
  if (std::ranges::any_of(overrides, is_asked)) return std::ranges::max(probe.at) + 1;
  if (std::ranges::max(probe.at) > 0)
    log_warning("one step is made; the recipe's probe.at names others: --steps {} makes them",
                std::ranges::max(probe.at) + 1);
  return 1;
}

// Of a run that has diverged: its dump is there, and shows what became of it.
void say_where_the_dump_is(const std::string& out, int steps) {
  if (steps == 0) return;
  print_result(
      "{}; what {} held is in {}\n"
      "the same call with --task overflow and another --out names the op where numbers stop being "
      "finite\n",
      steps_of(steps), steps == 1 ? "it" : "they", out);
}

struct CountSteps : Listener {
  void step_done(const StepDone&, Control&) override { ++steps; }
  int steps = 0;
};

ExitCode probe_run(const Options& o) {
  if (!o.tokens.empty()) return probe_run_model(o);
  if (!o.precision.empty())
    throw UserError("E0700", "--precision is for a model, with --tokens")
        .advice("of a recipe: --set precision.level=" + o.precision);
  auto [overrides, out] = asked_of(o);
  const std::int64_t steps = steps_asked(o, overrides);
  overrides.push_back({"train.steps", std::to_string(steps)});
  if (o.threads) overrides.push_back({"train.threads", std::to_string(*o.threads)});
  if (const auto device = given_device())
    overrides.push_back({"train.device", "\"" + *device + "\""});
  const Recipe recipe = load_recipe(o.recipe.path, overrides);
  need_steps_to_look_at(recipe, !o.looked_at.empty());
  if (o.steps && recipe.probe.task == "structure")
    throw UserError("E0700", "with task structure no step is made")
        .saw("--steps " + std::to_string(*o.steps))
        .need("no --steps, or another --task");
  set_log_level(LogLevel::Warning);
  TrainOptions t;
  t.out = Path(out) / "run";
  t.probe_out = out;
  t.quiet = true;
  t.machine = machine_name();
  CountSteps made;
  t.listeners = {&made};
  t.measure = [] { return device_rates(); };
  if (path_exists(t.out / "run.json"))  // no advice to resume: steps are probed in one go
    throw UserError("E0811", "the folder holds a probed run already")
        .at(t.out.string())
        .advice("another --out, or remove this one");
  const bool is_new = !path_exists(t.out);
  const Path overflows = Path(out) / "overflow.json";
  const auto is_found = [&] { return recipe.probe.task == "overflow" && path_exists(overflows); };
  TrainResult r;
  try {
    r = run_training(recipe, t);
  } catch (const DivergedError&) {  // what was looked for has been found
    if (is_found())
      print_overflows(overflows, t.out);
    else
      say_where_the_dump_is(out, made.steps);
    throw;
  } catch (const UserError&) {  // what is refused, at an eager step behind it, is not in the way
    std::error_code none;
    if (is_new && made.steps <= 1) std::filesystem::remove_all(t.out, none);
    throw;
  }
  if (recipe.probe.task == "structure")
    print_result("which call lies in which is in {}; no step was made\n", out);
  else
    print_result("{}; what {} held is in {}{}\n", steps_of(r.steps), r.steps == 1 ? "it" : "they",
                 out, written_in(out));
  if (is_found()) print_overflows(overflows, t.out);
  return r.exit;
}

}  // namespace

Action probe_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* run = app.add_subcommand("run", "make steps of a recipe, and write what they hold");
  CLI::App* compare = app.add_subcommand("compare", "say where two dumps part first");
  CLI::App* check = app.add_subcommand("acc-check", "make dumped calls again, in double");
  CLI::App* redo = app.add_subcommand("redo", "make a recorded step again, bit for bit");
  CLI::App* config =
      app.add_subcommand("check-config", "say in what two runs differ, before they run");
  const auto example = [](CLI::App* of, const char* line) {
    of->footer(std::string("Example:\n  ") + line);
  };
  example(compare, "aloft probe compare ported original --out compared");
  example(check, "aloft probe acc-check calls --out checked");
  example(redo, "aloft probe redo runs/gpt --step 811");
  example(config, "aloft probe check-config a.toml train.sh");
  app.require_subcommand(1);
  app.set_help_flag();  // there are several things to do: their options are shown, too
  app.set_help_all_flag("-h,--help", "Print this help message and exit");
  add_recipe(*run, o->recipe, "recipe file (*.toml); with --tokens a saved model");
  run->add_option("--tokens", o->tokens,
                  "safetensors: tokens [B, T], optional targets [B, T], of one pass over a model");
  add_precision(*run, o->precision);
  run->add_option("--task", o->task,
                  "what is looked at: statistics, tensor, overflow, structure or acc_check "
                  "(default: statistics, or --config's)")
      ->check(CLI::IsMember({"statistics", "tensor", "overflow", "structure", "acc_check"}));
  run->add_option("--config", o->config, "msprobe's config.json: what it asks for");
  run->add_option("--level", o->level,
                  "module, op or mix: calls of modules and parameters, every op, or both (default: "
                  "the recipe's, or module)")
      ->check(CLI::IsMember({"module", "op", "mix"}));
  run->add_option(
      "--out", o->out,
      "folder of the steps' folders, and of the run itself: run/ (default: --config's)");
  run->add_option("--steps", o->steps,
                  "steps that are made (default: 1, or what --at and --config ask for)")
      ->check(at_least(1));
  run->add_option("--at", o->looked_at,
                  "steps that are written, counted from 0 (default: the recipe's, or all)")
      ->delimiter(',');
  add_threads(*run, o->threads);
  add_device(*run);
  return
      [o, run, redo, check, config, compares = probe_compare(*compare), redoes = probe_redo(*redo),
       checks = probe_acc_check(*check), checks_config = probe_check_config(*config)] {
        if (run->parsed()) return probe_run(*o);
        if (check->parsed()) return checks();
        if (config->parsed()) return checks_config();
        return redo->parsed() ? redoes() : compares();
      };
}

}  // namespace aloft::cli
