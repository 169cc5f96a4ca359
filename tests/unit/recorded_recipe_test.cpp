// A recipe that was taken is read back from what run.json says of it, whatever the command line has
// switched off.
#include "run/recorded_recipe.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "recipe/recipe_fields.h"
#include "recipe/recipe_json.h"
#include "recipe/recipe_unused.h"
#include "recipe_mistakes.h"

namespace aloft {
namespace {

using nlohmann::json;

// What a key may be set to so that it switches others off: each of its words, false, 0.
std::vector<std::string> words_of(const RecipeField& f) {
  std::vector<std::string> words;
  if (std::holds_alternative<bool*>(f.target)) words = {"false"};
  if (std::holds_alternative<std::int64_t*>(f.target)) words = {"0"};
  for (const std::string_view word : f.choices) words.push_back('"' + std::string(word) + '"');
  return words;
}

// A value that asks for something, as TOML; "" where none is known.
std::string asking(const RecipeField& f) {
  if (std::holds_alternative<bool*>(f.target)) return **std::get_if<bool*>(&f.target) ? "" : "true";
  if (std::holds_alternative<std::int64_t*>(f.target))
    return f.least < f.most && f.least > 7 ? "" : "7";
  if (std::holds_alternative<double*>(f.target))
    return f.least < f.most && f.most < 0.25 ? "" : "0.25";
  if (std::holds_alternative<std::string*>(f.target))
    return f.choices.empty() ? "" : '"' + std::string(f.choices.back()) + '"';
  if (std::holds_alternative<std::vector<std::string>*>(f.target)) return "[\"h.0\"]";
  if (std::holds_alternative<std::vector<std::int64_t>*>(f.target)) return "[7]";
  return f.key == "optimizer.betas" ? "[0.5, 0.75]" : "";
}

// What has to stand there for the selector itself to be read.
std::string ground_of(const std::string& selector) {
  return selector.starts_with("probe.") && selector != "probe.task" ? "probe.task = \"tensor\"\n"
                                                                    : "";
}

std::string line(const std::string& key, const std::string& value) {
  return key + " = " + value + "\n";
}

bool is_taken(const std::string& text, const std::vector<Override>& set) {
  try {
    parse_recipe(text, "r.toml", set);
  } catch (const UserError&) {
    return false;
  }
  return true;
}

// What does nothing where the command line sets the key; nothing where it may not.
std::optional<std::set<std::string>> idle_keys(const Override& set) {
  const std::string ground = ground_of(set.key);
  if (!is_taken(ground, {set})) return std::nullopt;
  std::set<std::string> keys;
  for (const UnusedKey& u : unused_keys(parse_recipe(ground, "r.toml", {set}), true))
    keys.insert(u.key);
  return keys;
}

void expect_read_back(const Recipe& recipe) {
  const json values = json_of(recipe);
  try {
    EXPECT_EQ(json_of(recorded_recipe(values, recipe.origin, "run.json")), values);
  } catch (const UserError& e) {
    ADD_FAILURE() << e.what();
  }
}

// What a file asks for while `selector` is `on`, and the command line sets that to `off`. Gives
// whether there is a key of which that can be said.
bool expect_read_back(const std::string& key, const std::string& value, const std::string& selector,
                      const std::string& on, const std::string& off) {
  const std::string file = ground_of(selector) + line(selector, on) + line(key, value);
  const std::vector<Override> set = {{selector, off}};
  if (!is_taken(file, {}) || !is_taken(file, set)) return false;
  SCOPED_TRACE(file + "--set " + selector + "=" + off);
  expect_read_back(parse_recipe(file, "r.toml", set));
  return true;
}

// Each key that one word of the selector reads, and another does not, with one pair of such words.
bool expect_each_read_back(const std::vector<RecipeField>& fields, const RecipeField& selector) {
  std::vector<std::string> words = words_of(selector);
  if (words.size() == 1) words.push_back(words[0] == "0" ? "5" : "true");
  std::map<std::string, std::set<std::string>> idle;
  for (const std::string& word : words)
    if (auto keys = idle_keys({selector.key, word})) idle[word] = *keys;
  bool is_any = false;
  const auto try_pairs = [&](const RecipeField& f) {
    for (const auto& [on, idle_on] : idle)
      for (const auto& [off, idle_off] : idle)
        if (!idle_on.contains(f.key) && idle_off.contains(f.key) &&
            expect_read_back(f.key, asking(f), selector.key, on, off))
          return true;
    return false;
  };
  for (const RecipeField& f : fields)
    if (f.key != selector.key && !asking(f).empty()) is_any |= try_pairs(f);
  return is_any;
}

TEST(RecordedRecipe, WhatTheCommandLineSwitchedOffIsReadBack) {
  Recipe recipe;
  const std::vector<RecipeField> fields = recipe_fields(recipe);
  std::set<std::string> selectors;
  for (const RecipeField& f : fields)
    if (!f.key.starts_with("model.") && !words_of(f).empty() && expect_each_read_back(fields, f))
      selectors.insert(f.key);
  for (const char* key :
       {"schedule.kind", "train.mode", "probe.task", "probe.level", "probe.summary",
        "probe.histograms", "train.on_spike", "optimizer.average", "optimizer.kind", "monitor.on",
        "profile.steps", "train.keep_checkpoints", "data.tokenizer.kind"})
    EXPECT_TRUE(selectors.contains(key)) << key;
}

TEST(RecordedRecipe, WhatIsSaidBesidesItIsStillLookedAt) {
  const Recipe recipe = parse_recipe("[probe]\ntask = \"tensor\"\nformat = \"npy\"\n", "r.toml",
                                     {{"probe.task", "statistics"}});
  const auto again = [&](const Override& said) {
    return recorded_recipe(json_of(recipe), recipe.origin, "run.json", {said});
  };
  EXPECT_EQ(again({"probe.task", "overflow"}).probe.task, "overflow");
  EXPECT_EQ(again({"probe.task", "tensor"}).probe.format, "npy");
  EXPECT_THROW(again({"probe.format", "npy"}), UserError);
}

}  // namespace
}  // namespace aloft
