// Options that several verbs have, each with its one help text and its one check: a verb asks for
// those that it takes, and never declares one of them itself.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "precision/recipe.h"
#include "recipe/recipe.h"

namespace aloft::cli {

// RECIPE, and what --set and --init say of its keys.
struct RecipeWords {
  std::string path;
  std::vector<std::string> set;  // KEY=VALUE
  std::string init;              // model.init; empty where it is not given
};
// RECIPE, --set and --init. `what`: what may be named.
void add_recipe(CLI::App& app, RecipeWords& words,
                const std::string& what = "recipe file (*.toml)");
// --set and --init alone.
void add_recipe_keys(CLI::App& app, RecipeWords& words);
// Both, read, --init behind: UserError E0713.
std::vector<Override> overrides_of(const RecipeWords& words);

// RUN: a run directory. `help`: which.
void add_run(CLI::App& app, std::string& run, const std::string& help);

// MODEL, --checkpoint and --average: a model that was saved.
struct SavedModelWords {
  std::string path, checkpoint;
  bool average = false;
};
void add_saved_model(CLI::App& app, SavedModelWords& words);

// --chat-template: of "messages"; empty where it is not given, and the model's own is meant.
void add_chat_template(CLI::App& app, std::string& chat_template);

// --precision; empty where it is not given. UserError E0711 while the line is read.
void add_precision(CLI::App& app, std::string& precision);
// What it means where no recipe stands behind it: O0 where it is empty.
PrecisionRecipe precision_of(const std::string& precision);

// --mode: "graph" or "eager"; empty where it is not given.
void add_mode(CLI::App& app, std::string& mode);

// --probe: "statistics", "statistics:op" ...; empty where it is not given. `writes`: of a run that
// has a folder, where whole tensors, calls and the structure may go.
void add_probe(CLI::App& app, std::string& probe, bool writes = false);
// What it says of a recipe's keys; `origin` of [probe] stays that of the file where it is empty.
std::vector<Override> overrides_of_probe(const std::string& probe);

// --profile: so many steps are timed (profile.steps); nothing where it is not given.
void add_profile(CLI::App& app, std::optional<std::int64_t>& profile);

// --threads: 0 to kMostThreads; nothing where it is not given.
void add_threads(CLI::App& app, std::optional<std::int64_t>& threads);

// --json; `what` is printed: "a list of objects".
void add_json(CLI::App& app, bool& as_json, const std::string& what = "an object");

// --quiet: of what shows how far it is.
void add_quiet(CLI::App& app, bool& is_quiet);

// --no-limit: of what times something.
void add_no_limit(CLI::App& app, bool& no_limit);

// --out: the folder of what two things differ in, as it stands in `out` where it is not given.
void add_results_folder(CLI::App& app, std::string& out);
// --strict: what is not alike is an error; `what` is it that is not.
void add_strict(CLI::App& app, bool& is_strict, const std::string& what);

// --device: what the verb runs on, "cpu", "sim", "sim:910B3"; without it what the recipe says, or
// else ALOFT_DEVICE, or the cpu. UserError E0332 while the line is read where there is none.
// `help`: what it is for, where that is something else.
void add_device(CLI::App& app, const std::string& help = "");
// The device's name, where the command line names one.
std::optional<std::string> given_device();
// The recipe's device, where the command line names none. UserError E0332.
void use_device_of(const Recipe& recipe);

}  // namespace aloft::cli
