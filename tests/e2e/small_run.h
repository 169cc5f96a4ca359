// A small training run through the trainer: a recipe over a generated text, its run directory, and
// what must be equal between two runs.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "e2e/training.h"
#include "recipe/recipe.h"
#include "scalar/philox.h"
#include "temporary_folder.h"
#include "train/trainer.h"

namespace aloft::e2e {

inline std::string small_text() {
  const std::string words[] = {"what ",  "is ",     "written ", "once ",  "read ", "many ",
                               "times ", "plain\n", "test ",    "claim ", "and ",  "so "};
  std::string text;
  for (std::uint64_t i = 0; text.size() < 12000; ++i)
    text += words[scalar::mix64(i * 7919 + 17) % std::size(words)];
  return text;
}

// Dropout and fp16 on purpose: random state and loss scaler are then part of what is continued.
inline constexpr const char* kSmallRecipe = R"([model]
family = "gpt2"
layers = 2
dim = 32
heads = 2
context = 16
dropout = 0.1
[data]
text = ["text.txt"]
tokenizer = { kind = "char" }
validation = 0.1
[precision]
level = "O2:fp16"
[optimizer]
kind = "adamw"
lr = 5e-3
[schedule]
kind = "cosine"
warmup = 3
[train]
batch = 4
steps = 12
eval_every = 5
checkpoint_every = 4
keep_checkpoints = 0
keep_best = 0
sample_tokens = 0
threads = 2
seed = 3
)";

// Of lines such as "train.steps=2". Where a test is run on two devices and what they compute is
// compared, training waits for its checkpoints on both: on one that works on its own it does so
// anyway, and measures the loss of each state that it saves.
inline std::vector<Override> overrides_of(const std::vector<std::string>& set) {
  std::vector<Override> overrides;
  if (std::getenv("ALOFT_E2E_DIGEST"))
    overrides.push_back(parse_override("train.checkpoint_copy=false"));
  for (const std::string& s : set) overrides.push_back(parse_override(s));
  return overrides;
}

class SmallRun : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    set_log_level(LogLevel::Error);
    folder_.put(folder_ / "text.txt", small_text());
    folder_.put(folder_ / "small.toml", recipe_text());
  }
  std::string recipe_text() const {
    std::string text = kSmallRecipe;
    const std::string data = "[data]\n";
    text.insert(text.find(data) + data.size(),
                "cache = \"" + (folder_ / "cache").string() + "\"\n");
    return text;
  }
  Recipe recipe(const std::vector<std::string>& set = {}) const {
    return load_recipe(folder_ / "small.toml", overrides_of(set));
  }
  TrainResult run(const std::string& out, const std::vector<std::string>& set = {},
                  bool resume = false) const {
    aloft::TrainOptions options;
    options.out = folder_ / out;
    options.resume = resume;
    options.quiet = true;
    return run_training(recipe(set), options);
  }
  Path checkpoint(const std::string& out, const std::string& name) const {
    return folder_ / out / "checkpoints" / name;
  }
  std::string bytes(const std::string& out, const std::string& step, const char* file) const {
    return read_file(checkpoint(out, step) / file, 1 << 26);
  }
  void expect_same_state(const std::string& a, const std::string& b,
                         const std::string& step = "step-000012") const {
    for (const char* file : {"model.safetensors", "state.safetensors"})
      EXPECT_TRUE(bytes(a, step, file) == bytes(b, step, file)) << a << " " << b << " " << file;
  }
  // metrics.jsonl without what a clock decides.
  std::vector<nlohmann::json> metrics(const std::string& out) const {
    std::istringstream text(read_file(folder_ / out / "metrics.jsonl", 1 << 26));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(text, line);) {
      lines.push_back(nlohmann::json::parse(line));
      for (const char* key : {"time_s", "tokens_per_s", "saving_s"}) lines.back().erase(key);
    }
    return lines;
  }

  TemporaryFolder folder_;
};

}  // namespace aloft::e2e
