#include "cli/data_batches.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output.h"
#include "base/text.h"
#include "checkpoint/data_record.h"
#include "cli/option_checks.h"
#include "cli/recipe_subject.h"
#include "run/recorded_recipe.h"
#include "run/run_directory.h"
#include "sources/batches_file.h"
#include "sources/source_kind.h"

namespace aloft::cli {
namespace {

bool is_read_for_batches(std::string_view key) {
  constexpr std::string_view kSections[] = {"data.", "model.", "task."};
  constexpr std::string_view kKeys[] = {"train.accumulate", "train.batch", "train.epochs",
                                        "train.seed", "train.steps"};
  return std::ranges::any_of(kSections, [&](auto s) { return key.starts_with(s); }) ||
         std::ranges::find(kKeys, key) != std::end(kKeys);
}

struct Subject {
  Recipe recipe;
  std::unique_ptr<RunData> data;
};

// The data as the run has it, which begins from its first example.
Subject of_run(const BatchesWords& words) {
  if (!words.recipe.set.empty() || !words.recipe.init.empty())
    throw UserError("E0700", "a run's batches are those that it was given")
        .saw(words.recipe.set.empty() ? std::string("--init") : "--set " + words.recipe.set[0])
        .need("a recipe, for another one's");
  const Path run = words.recipe.path;
  const nlohmann::json record = read_run_record(run / "run.json");
  const auto origin = record.find("origin");
  Subject s{recorded_recipe(record.at("recipe"),
                            origin == record.end() ? nlohmann::json::object() : *origin,
                            (run / "run.json").string()),
            nullptr};
  const Path file = run / "data.json";
  const nlohmann::json known =
      path_exists(file) ? parse_data_record(read_file(file), file.string()) : nullptr;
  s.data = source_of(s.recipe).reopen(s.recipe, {run, known, {}}, true);
  return s;
}

Subject of_recipe(const BatchesWords& words) {
  Subject s{load_recipe(words.recipe.path, overrides_of(words.recipe)), nullptr};
  refuse_unread(s.recipe, is_read_for_batches, "batches are written");
  s.data = source_of(s.recipe).open(s.recipe, true);
  return s;
}

}  // namespace

void add_batches_words(CLI::App& app, BatchesWords& words) {
  add_recipe(app, words.recipe, "recipe file (*.toml), or a run");
  app.add_option("--steps", words.steps, "the first so many steps")
      ->check(at_least(1))
      ->capture_default_str();
  app.add_option("--out", words.out, "file (*.safetensors)")->required();
  add_json(app, words.json);
  app.footer("Example:\n  aloft data batches recipes/gpt-cpp.toml --out batches.safetensors");
}

ExitCode data_batches(const BatchesWords& words) {
  if (!words.out.ends_with(".safetensors"))
    throw UserError("E0700", "batches are written as safetensors")
        .saw("--out " + words.out)
        .need("--out FILE.safetensors");
  const Path path = words.recipe.path;
  const Subject s =
      is_folder(path) && path_exists(path / "run.json") ? of_run(words) : of_recipe(words);
  const WrittenBatches written = write_batches(s.recipe, *s.data, words.steps, words.out);
  nlohmann::json tensors = nlohmann::json::object();
  std::string names;
  for (const WrittenBatches::Column& c : written.columns) {
    tensors[c.name] = c.type.shape.max_extents();
    names += (names.empty() ? "" : ", ") + c.name + " " + c.type.str();
  }
  const nlohmann::json answer = {{"file", words.out},
                                 {"steps", written.steps},
                                 {"micro_batches", written.batches},
                                 {"examples", written.examples},
                                 {"tensors", std::move(tensors)}};
  if (words.json)
    print_result("{}\n", json_text(answer, 2));
  else
    print_result("{}, {} examples: {}\n", counted(written.steps, "step"), written.examples, names);
  return ExitCode::Ok;
}

}  // namespace aloft::cli
