#include "cli/shared_options.h"

#include <nlohmann/json.hpp>

#include "backends/catalog.h"
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/option_checks.h"
#include "frontend/eager.h"

namespace aloft::cli {
namespace {

std::optional<std::string> device_given;  // of this command line

CLI::Validator thread_count() {
  return {[](std::string& text) -> std::string {
            const auto value = parse_int(text);
            if (value && *value >= 0 && *value <= kMostThreads) return "";
            return "need a whole number, 0 or more and at most " + std::to_string(kMostThreads) +
                   ", got " + text;
          },
          ""};
}

}  // namespace

void add_recipe_keys(CLI::App& app, RecipeWords& words) {
  app.add_option("--set", words.set, "KEY=VALUE: overrides a key of the recipe; repeatable");
  app.add_option("--init", words.init,
                 "a Hugging Face folder: model, tokenizer and first weights (model.init)");
}

void add_recipe(CLI::App& app, RecipeWords& words, const std::string& what) {
  app.add_option("recipe", words.path, what)->required();
  add_recipe_keys(app, words);
}

std::vector<Override> overrides_of(const RecipeWords& words) {
  std::vector<Override> overrides;
  for (const std::string& text : words.set) overrides.push_back(parse_override(text));
  if (!words.init.empty())
    overrides.push_back({"model.init", json_text(nlohmann::json(words.init))});
  return overrides;
}

void add_run(CLI::App& app, std::string& run, const std::string& help) {
  app.add_option("run", run, help)->required();
}

void add_saved_model(CLI::App& app, SavedModelWords& words) {
  app.add_option("model", words.path, "run directory, checkpoint, or Hugging Face folder")
      ->required();
  app.add_option("--checkpoint", words.checkpoint,
                 "of a run: newest, best (in validation) or a step (default: newest)");
  app.add_flag("--average", words.average,
               "of a run with optimizer.average: the means of its weights");
}

void add_chat_template(CLI::App& app, std::string& chat_template) {
  app.add_option("--chat-template", chat_template,
                 "of \"messages\": a file, or a model's folder (default: the model's own)");
}

void add_precision(CLI::App& app, std::string& precision) {
  app.add_option_function<std::string>(
      "--precision",
      [&precision](const std::string& text) {
        parse_precision(text);
        precision = text;
      },
      "O0, O1, O2:bf16, O2:fp16 ... (default: the recipe's, or O0)");
}

PrecisionRecipe precision_of(const std::string& precision) {
  return precision.empty() ? PrecisionRecipe{} : parse_precision(precision);
}

void add_mode(CLI::App& app, std::string& mode) {
  app.add_option("--mode", mode, "graph or eager (default: the recipe's, or graph)")
      ->check(CLI::IsMember({"graph", "eager"}));
}

void add_probe(CLI::App& app, std::string& probe, bool writes) {
  std::vector<std::string> words = {"overflow", "trends", "none"};
  if (writes) words.insert(words.end(), {"structure", "acc_check"});
  for (const char* task : {"statistics", "tensor"})
    if (writes || task == std::string_view("statistics"))
      for (const char* level : {"", ":module", ":op", ":mix", ":op,attention", ":mix,attention"})
        words.push_back(std::string(task) + level);
  app.add_option("--probe", probe,
                 writes ? "statistics or tensor[:op], overflow, structure, trends, none ..."
                        : "statistics[:op[,attention]], overflow, trends, none (default: recipe)")
      // Not shown as a set: a line of help would be too long.
      ->check(one_of(words));
}

std::vector<Override> overrides_of_probe(const std::string& probe) {
  std::vector<Override> set;
  if (probe.empty()) return set;
  if (probe == "trends") return {{"monitor.on", "true"}};
  const std::size_t comma = probe.find(',');
  if (comma != std::string::npos) {
    set = overrides_of_probe(probe.substr(0, comma));
    set.push_back({"probe." + probe.substr(comma + 1), "true"});
    return set;
  }
  const std::size_t colon = probe.find(':');
  set.push_back({"probe.task", '"' + probe.substr(0, colon) + '"'});
  if (colon != std::string::npos)
    set.push_back({"probe.level", '"' + probe.substr(colon + 1) + '"'});
  return set;
}

void add_profile(CLI::App& app, std::optional<std::int64_t>& profile) {
  app.add_option("--profile", profile, "steps whose instructions are timed (profile.steps)")
      ->check(at_least(0));
}

void add_threads(CLI::App& app, std::optional<std::int64_t>& threads) {
  app.add_option("--threads", threads, "0: all (default: the recipe's, or all)")
      ->check(thread_count());
}

void add_json(CLI::App& app, bool& as_json, const std::string& what) {
  app.add_flag("--json", as_json, "print JSON: " + what);
}

void add_quiet(CLI::App& app, bool& is_quiet) {
  app.add_flag("--quiet", is_quiet, "no progress, only warnings and errors");
}

void add_no_limit(CLI::App& app, bool& no_limit) {
  app.add_flag("--no-limit", no_limit, "do not measure the machine's limit");
}

void add_results_folder(CLI::App& app, std::string& out) {
  app.add_option("-o,--out", out, "folder of the results")->capture_default_str();
}

void add_strict(CLI::App& app, bool& is_strict, const std::string& what) {
  app.add_flag("--strict", is_strict, what + " is an error (exit status 5)");
}

void add_device(CLI::App& app, const std::string& help) {
  app.add_option_function<std::string>(
      "--device",
      [](const std::string& name) {
        Device& device = open_device(name);
        use_device(device);
        device_given = device.name();
      },
      help.empty() ? "a device of `aloft devices` (default: recipe, ALOFT_DEVICE, cpu)" : help);
}

std::optional<std::string> given_device() { return device_given; }

void use_device_of(const Recipe& recipe) {
  if (device_given) return;
  if (Device* device = device_of(recipe)) use_device(*device);
}

}  // namespace aloft::cli
