#include "cli/probe_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/option_checks.h"
#include "recipe/msprobe_config.h"
#include "recipe/recipe_leaves.h"

namespace aloft::cli {

namespace {

constexpr std::int64_t kMostSteps = 100'000;  // of all ranges together

struct Range {
  std::int64_t first, last;
};

// "4", or "6-9" as msprobe writes it; nothing where it is neither.
std::optional<Range> range_in(const std::string& text) {
  const std::size_t dash = text.find('-', 1);
  const auto first = parse_int(text.substr(0, dash));
  const auto last = dash == std::string::npos ? first : parse_int(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first) return std::nullopt;
  return Range{*first, *last};
}

CLI::Validator step_or_range() {
  return {[](std::string& text) -> std::string {
            return range_in(text) ? "" : "need a step, 4, or steps in a row, 4-6, got " + text;
          },
          ""};
}

// As probe.at has them.
std::string steps_in(const std::vector<std::string>& words) {
  std::string list;
  std::int64_t count = 0;
  for (const std::string& word : words) {
    const Range range = *range_in(word);
    if (range.last - range.first >= kMostSteps - count)
      throw UserError("E0700", "--at names too many steps")
          .saw(word)
          .need(fmt::format("at most {} steps", kMostSteps))
          .advice("--set probe.every=N looks at every N-th step");
    count += range.last - range.first + 1;
    for (std::int64_t step = range.first; step <= range.last; ++step)
      list += (list.empty() ? "" : ", ") + std::to_string(step);
  }
  return "[" + list + "]";
}

bool names_key(const std::vector<Override>& overrides, const std::string& key) {
  return std::ranges::find(overrides, key, &Override::key) != overrides.end();
}

// Whether the recipe itself says what is looked at. Of a run and of a saved model it does not.
bool recipe_names_task(const ProbeWords& words) {
  constexpr std::uint64_t kLimit = 1 << 20;
  const Path path = words.recipe.path;
  if (!words.tokens.empty() || !path_exists(path) || is_folder(path)) return false;
  std::string task = "none";
  for (const Leaf& leaf : leaves_of(read_file(path, kLimit), path.string(), {}))
    if (leaf.key == "probe.task")
      task = leaf.value.is_string() ? leaf.value.get<std::string>() : "";
  return task != "none";
}

}  // namespace

void add_probe_words(CLI::App& app, ProbeWords& words) {
  add_recipe(app, words.recipe,
             "recipe file (*.toml); with --at a run; with --tokens a saved model");
  app.add_option("--tokens", words.tokens,
                 "safetensors: tokens [B, T] (and targets) of one pass over a model");
  app.add_option("--batch", words.batch,
                 "of a file of `aloft data batches`, from 0: with --tokens (default: 0)")
      ->check(at_least(0));
  add_precision(app, words.precision);
  app.get_option("--precision")
      ->description("of a model, with --tokens: O0 (default), O1, O2:bf16, O2:fp16 ...");
  // Not shown as sets: a line of help would be too long.
  app.add_option("--task", words.task,
                 "statistics, tensor, overflow, structure, acc_check (default: recipe's)")
      ->check(CLI::IsMember({"statistics", "tensor", "overflow", "structure", "acc_check"})
                  .description(""));
  app.add_option("--config", words.config, "msprobe's config.json: what it asks for");
  app.add_option("--level", words.level,
                 "module (L0), op (L1) or mix, both (default: recipe's, or module)")
      ->check(CLI::IsMember({"module", "op", "mix", "L0", "L1"}).description(""));
  app.add_option("--out", words.out,
                 "folder of the steps' folders and of run/ (default: --config's)");
  app.add_option("--steps", words.steps,
                 "steps that are made (default: 1, or what --at, --config ask for)")
      ->check(at_least(1));
  app.add_option("--at", words.at,
                 "steps that are written, from 0: 0,4-6 (default: recipe's, or all)")
      ->delimiter(',')
      ->check(step_or_range());
  add_threads(app, words.threads);
  add_device(app);
  add_json(app, words.json);
  add_quiet(app, words.quiet);
}

AskedOfProbe asked_of(const ProbeWords& words) {
  AskedOfProbe asked{overrides_of(words.recipe), words.out};
  std::vector<Override> of_config;
  if (!words.config.empty()) {
    const MsprobeConfig config = read_msprobe_config(words.config, words.task);
    of_config = config.probe;
    if (asked.out.empty()) asked.out = config.dump_path;
  }
  if (asked.out.empty())
    throw UserError("E0700", "where the steps' folders go is not said")
        .need("--out DIR, or a config.json with a dump_path");
  // What --set says of the task is one, and what the recipe says.
  const bool is_said =
      words.task.empty() && (names_key(asked.overrides, "probe.task") || recipe_names_task(words));
  if (words.config.empty() && !is_said)
    for (Override& set : overrides_of_probe(words.task.empty() ? "statistics" : words.task))
      asked.overrides.push_back(std::move(set));
  if (!words.level.empty()) {
    const std::string level = words.level == "L0"   ? "module"
                              : words.level == "L1" ? "op"
                                                    : words.level;
    asked.overrides.push_back({"probe.level", '"' + level + '"'});
  }
  if (!words.at.empty()) asked.overrides.push_back({"probe.at", steps_in(words.at)});
  asked.overrides = with_said(std::move(of_config), asked.overrides);
  return asked;
}

std::string word_of_recipe(const ProbeWords& words) {
  if (!words.recipe.init.empty()) return "--init " + words.recipe.init;
  for (const Override& set : overrides_of(words.recipe))
    if (!set.key.starts_with("probe.")) return "--set " + set.key;
  return "";
}

}  // namespace aloft::cli
