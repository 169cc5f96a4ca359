// aloft probe run RECIPE --out DIR, aloft probe run MODEL --tokens F --out DIR
#include "cli/probe_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/machine.h"
#include "cli/made_folder.h"
#include "cli/probe_answer.h"
#include "cli/probe_model.h"
#include "cli/probe_overflows.h"
#include "cli/probe_recorded.h"
#include "cli/probe_words.h"
#include "cli/product_rates.h"
#include "models/huggingface.h"
#include "runtime/threads.h"
#include "train/recorded_run.h"
#include "train/trainer.h"
#include "train/written_file.h"

namespace aloft::cli {

namespace {

// What no pass over a saved model has.
void refuse_what_is_of_recipes(const ProbeWords& o) {
  const auto refuse = [](const std::string& option, const std::string& why) {
    throw UserError("E0700", "with --tokens one pass is made over a saved model")
        .saw(option + ": " + why)
        .need(
            "--out DIR; of the other options --batch, --task, --level, --config, --precision, "
            "--threads, --device, and --set of keys of [probe]");
  };
  if (const std::string word = word_of_recipe(o); word.starts_with("--init"))
    refuse(word, "the model is the one that is named");
  else if (!word.empty())
    refuse(word, word.starts_with("--set precision") ? "of a model it is --precision"
                                                     : "a saved model has no such key");
  if (o.steps.value_or(1) != 1) refuse("--steps " + std::to_string(*o.steps), "there is one pass");
  if (o.task == "acc_check") refuse("--task acc_check", "it records calls of a recipe's steps");
}

// Steps that the run does not make are not looked at: one of them is refused where it was asked for
// `by_hand`; of a recipe's, or a config.json's, all. `instead`: what to try; "": more steps.
void need_steps_to_look_at(const Recipe& recipe, std::int64_t steps, bool by_hand,
                           const std::string& instead = "") {
  const std::vector<std::int64_t>& at = recipe.probe.at;
  const auto is_made = [&](std::int64_t step) { return step < steps; };
  if (at.empty() || recipe.probe.task == "structure") return;
  if (by_hand ? std::ranges::all_of(at, is_made) : std::ranges::any_of(at, is_made)) return;
  const std::int64_t last = std::ranges::max(at);
  throw UserError("E0700", "a step is to be looked at that is not made")
      .saw(fmt::format("step {}, counted from 0, of {}", last, counted(steps, "step")))
      .advice(instead.empty() ? fmt::format("--steps {}, or another --at", last + 1) : instead);
}

// Of a model one pass forward and backward is looked at, whole.
ExitCode probe_run_model(const ProbeWords& o) {
  refuse_what_is_of_recipes(o);
  AskedOfProbe asked = asked_of(o);
  asked.overrides.push_back({"train.steps", "1"});
  const Recipe recipe = parse_recipe("", "--tokens", asked.overrides);
  need_steps_to_look_at(recipe, 1, !o.at.empty(), "of a model one pass is made, step 0: no --at");
  if (recipe.probe.task == "acc_check" || look_at(recipe.probe, 0) == Look::Nothing)
    throw UserError("E0700", "with --tokens nothing would be looked at")
        .saw("probe.task = " + in_quotes(recipe.probe.task))
        .need("statistics, tensor, overflow or structure");
  if (o.threads.value_or(0) > 0) host_threads().set_count(static_cast<int>(*o.threads));
  return probe_model({o.recipe.path, o.tokens, o.batch.value_or(0), asked.out, o.precision,
                      recipe.probe, o.json, o.quiet});
}

// How many steps are made where --steps does not say it: up to the last one that the command line
// or a config.json wants to see. What a recipe has for its training is no wish for a long probe;
// steps of it that are not made are said.
std::int64_t steps_asked(const ProbeWords& o, const std::vector<Override>& overrides) {
  if (o.steps) return *o.steps;
  std::vector<Override> first = overrides;
  first.push_back({"train.steps", "1"});
  const ProbeSection probe = load_recipe(o.recipe.path, first).probe;
  if (probe.at.empty() || probe.task == "structure") return 1;
  const auto is_asked = [](const Override& set) { return set.key == "probe.at"; };
  if (std::ranges::any_of(overrides, is_asked)) {
    const std::int64_t steps = std::ranges::max(probe.at) + 1;
    const Recipe whole = load_recipe(o.recipe.path, overrides);
    if (whole.train.epochs == 0 && whole.train.steps < steps)
      log_warning("step {} lies behind the {} of the recipe: {} are made", steps - 1,
                  counted(whole.train.steps, "step"), steps);
    return steps;
  }
  if (std::ranges::max(probe.at) > 0)
    log_warning("one step is made; the recipe's probe.at names others: --steps {} makes them",
                std::ranges::max(probe.at) + 1);
  return 1;
}

// Which steps were looked at; behind the last that is wanted the run ends.
struct SeenSteps : Listener {
  SeenSteps(const ProbeSection& of, std::int64_t steps) : probe(of), wanted(steps) {}
  void step_done(const StepDone& e, Control& run) override {
    ++made;
    if (e.step >= wanted) run.stop("the steps that the probe looks at are made");
    if (look_at(probe, e.step - 1) != Look::Nothing) looked_at.push_back(e.step - 1);
  }
  const ProbeSection& probe;
  const std::int64_t wanted;
  std::int64_t made = 0;
  std::vector<std::int64_t> looked_at;
};

class RecipeRun {
 public:
  explicit RecipeRun(const ProbeWords& o)
      : o_(o),
        answer_(o.json, o.quiet),
        asked_(asked_of(o)),
        steps_(steps_asked(o, asked_.overrides)),
        recipe_(recipe()),
        whole_(asked_.out),
        had_run_(path_exists(Path(asked_.out) / "run")) {}

  ExitCode make() {
    TrainOptions t;
    t.out = Path(asked_.out) / "run";
    t.probe_out = asked_.out;
    t.quiet = t.only_steps = true;
    t.shows_progress = !o_.quiet;
    t.shown_steps = steps_;
    t.machine = machine_name();
    t.listeners = {&seen_};
    if (!recipe_.precision.is_resolved()) t.measure = [] { return device_rates(); };
    if (path_exists(t.out / "run.json"))  // no advice to resume: steps are probed in one go
      throw UserError("E0811", "the folder holds a probed run already")
          .at(t.out.string())
          .advice("another --out, or remove this one");
    TrainResult r;
    try {
      r = run_training(recipe_, t);
    } catch (const DivergedError&) {  // what was looked for has been found
      say_what_is_known();
      throw;
    } catch (const UserError&) {  // what is refused, at an eager step behind it, is not in the way
      if (seen_.made <= 1) take_away();
      throw;
    } catch (const DataError&) {
      if (seen_.made == 0) take_away();
      throw;
    } catch (const Interrupted&) {
      take_away();
      throw;
    }
    const bool is_interrupted = r.exit == ExitCode::Interrupted;
    if (!is_interrupted && recipe_.probe.task != "structure" && r.last_step < steps_)
      log_warning("the recipe's train.epochs are {}: --set train.steps={} makes it longer",
                  counted(r.last_step, "step"), steps_);
    say_the_end(r, is_interrupted);
    if (is_found() && !is_interrupted) answer_overflows(answer_, overflows(), t.out);
    answer_.end();
    if (is_interrupted)
      print_talk("interrupted by {}: {} of {} were made; the dump of {} in {} is whole\n",
                 InterruptScope::signal_name(), r.steps, counted(steps_, "step"),
                 counted(std::ssize(seen_.looked_at), "step"), asked_.out);
    return r.exit;
  }

 private:
  // As long as it is, since rates may go by its length: the run ends behind the steps that are
  // asked for. Where these are more than it has, it is made longer.
  Recipe recipe() {
    std::vector<Override> overrides = asked_.overrides;
    const Recipe whole = load_recipe(o_.recipe.path, overrides);
    if (whole.train.epochs == 0 && whole.train.steps < steps_)
      overrides.push_back({"train.steps", std::to_string(steps_)});
    // What a recipe times of its training is no wish for it here; --set profile.steps is one.
    if (!std::ranges::any_of(overrides, [](const Override& set) {
          return set.key == "profile" || set.key.starts_with("profile.");
        }))
      overrides.push_back({"profile.steps", "0"});
    if (o_.threads) overrides.push_back({"train.threads", std::to_string(*o_.threads)});
    if (const auto device = given_device())
      overrides.push_back({"train.device", "\"" + *device + "\""});
    Recipe recipe = load_recipe(o_.recipe.path, overrides);
    need_steps_to_look_at(recipe, steps_, !o_.at.empty());
    if (o_.steps && recipe.probe.task == "structure")
      throw UserError("E0700", "with task structure no step is made")
          .saw("--steps " + std::to_string(*o_.steps))
          .need("no --steps, or another --task");
    return recipe;
  }

  Path overflows() const { return Path(asked_.out) / "overflow.json"; }
  bool is_found() const { return recipe_.probe.task == "overflow" && path_exists(overflows()); }
  void take_away() {
    std::error_code failed;
    if (!had_run_) std::filesystem::remove_all(Path(asked_.out) / "run", failed);
    whole_.take_away();
  }

  void set_facts() {
    answer_.set("out", asked_.out);
    answer_.set("task", recipe_.probe.task);
    answer_.set("steps", seen_.made);
    answer_.set("looked_at", seen_.looked_at);
    const auto written = read_written(asked_.out);
    answer_.set("written", written ? json_of(*written) : nlohmann::ordered_json(nullptr));
  }

  // Of a run that has diverged: its dump is there, and shows what became of it.
  void say_what_is_known() {
    set_facts();
    if (is_found())
      answer_overflows(answer_, overflows(), Path(asked_.out) / "run");
    else if (seen_.made > 0)
      answer_.say(fmt::format(
          "{}; what {} held is in {}\n"
          "the same call with --task overflow and another --out names the op where numbers stop "
          "being finite\n",
          counted(seen_.made, "step"), seen_.made == 1 ? "it" : "they", asked_.out));
    answer_.end();
  }

  void say_the_end(const TrainResult& r, bool is_interrupted) {
    set_facts();
    answer_.set("interrupted_by", is_interrupted
                                      ? nlohmann::ordered_json(InterruptScope::signal_name())
                                      : nlohmann::ordered_json(nullptr));
    if (recipe_.probe.task == "structure") {
      answer_.say(fmt::format("which call lies in which is in {}; no step was made\n", asked_.out));
      return;
    }
    const auto written = read_written(asked_.out);
    answer_.say(fmt::format("{}; what {} held is in {}{}\n", counted(r.steps, "step"),
                            r.steps == 1 ? "it" : "they", asked_.out,
                            written ? ": " + written->text() : ""));
  }

  const ProbeWords& o_;
  ProbeAnswer answer_;
  const AskedOfProbe asked_;
  const std::int64_t steps_;
  const Recipe recipe_;
  MadeFolder whole_;
  const bool had_run_;
  SeenSteps seen_{recipe_.probe, steps_};
};

// Who names a folder of Hugging Face may well mean its model, not a training that begins from it.
ExitCode probe_recipe(const ProbeWords& o) {
  try {
    RecipeRun run(o);
    set_log_level(LogLevel::Warning);
    return run.make();
  } catch (UserError& e) {
    if (models::is_huggingface_folder(o.recipe.path) &&
        (e.code() == "E0717" || e.code() == "E0718"))
      e.add_line("try", "aloft probe run " + in_shell(o.recipe.path) +
                            " --tokens F.safetensors --out DIR: one pass over tokens, which needs "
                            "no text");
    throw;
  }
}

// checkpoints/ of a run, or a folder in it.
bool lies_in_run(const Path& path) {
  const Path whole = std::filesystem::absolute(path / "").lexically_normal().parent_path();
  return is_folder(path) && !models::is_huggingface_folder(path) &&
         (path_exists(whole.parent_path() / "run.json") ||
          path_exists(whole.parent_path().parent_path() / "run.json"));
}

ExitCode probe_run_of(const ProbeWords& o) try {
  if (!o.tokens.empty()) return probe_run_model(o);
  if (o.batch)
    throw UserError("E0700", "--batch is for a file of batches, with --tokens")
        .advice("of a recipe's steps: --at");
  if (!is_recorded_run(o) && lies_in_run(o.recipe.path)) need_recorded_run(o.recipe.path);
  if (is_recorded_run(o)) return probe_recorded(o);
  if (!o.precision.empty())
    throw UserError("E0700", "--precision is for a model, with --tokens")
        .advice("of a recipe: --set precision.level=" + o.precision);
  return probe_recipe(o);
} catch (UserError& e) {
  if (e.code() == "E0327" && !o.config.empty()) e.add_line("at", o.config);
  throw;
}

}  // namespace

Action probe_run(CLI::App& app) {
  auto o = std::make_shared<ProbeWords>();
  add_probe_words(app, *o);
  return [o] { return probe_run_of(*o); };
}

}  // namespace aloft::cli
