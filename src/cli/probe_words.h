// What the command line of `aloft probe run` asks for, of whatever it is asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/shared_options.h"
#include "cli/verb.h"

namespace aloft::cli {

struct ProbeWords {
  RecipeWords recipe;  // or a run, or a saved model, by its path
  std::string task, level, out, config;
  std::string tokens, precision;  // of a model
  std::optional<std::int64_t> batch;
  std::vector<std::string> at;  // "4", "6-9"
  std::optional<std::int64_t> threads;
  std::optional<std::int64_t> steps;
  bool quiet = false, json = false;
};

void add_probe_words(CLI::App& app, ProbeWords& words);

// Keys of the recipe, config.json's among them, and where the steps' folders go.
struct AskedOfProbe {
  std::vector<Override> overrides;
  std::string out;
};
// UserError E0700 where no folder is said, E0713; E0729 and the like of --config.
AskedOfProbe asked_of(const ProbeWords& words);

// "--init FOLDER", "--set train.batch": what there is of a recipe alone, where no recipe is read;
// "" where there is nothing.
std::string word_of_recipe(const ProbeWords& words);

}  // namespace aloft::cli
