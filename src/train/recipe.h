// A recipe: everything that decides a training run, from a TOML file, `--set` overrides and
// defaults. recipe_fields.cpp lists every key once: reading, checking, printing and help follow it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/pack.h"
#include "frontend/optimizer.h"
#include "models/gpt2.h"
#include "precision/recipe.h"
#include "scalar/schedule.h"

namespace aloft {

struct ModelSection {
  std::string family = "gpt2";
  std::string size;  // "gpt2-124m": layers, heads, dim, vocab, context of a published size
  std::int64_t layers = 6, heads = 8, dim = 256, context = 256;
  std::int64_t vocab = 0;  // 0: the tokenizer's
  double dropout = 0;
  double init_std = 0.02, norm_eps = 1e-5;
  bool bias = true, tied = true;
};

struct DataSection {
  std::vector<std::string> text;
  std::string train_tokens, validation_tokens;  // shards made elsewhere, instead of text
  TokenizerSpec tokenizer;
  double validation = 0.05;
  std::string sampling = "windows";  // or "random": an independent offset each
  std::string cache;                 // "": a folder in the user's cache directory
};

struct OptimizerSection {
  std::string kind = "adamw";
  double lr = 1e-3;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;
  double momentum = 0.9;  // 0 of sgd, where it is not given
  bool nesterov = false;
  double clip_norm = 1.0;
  std::vector<std::string> no_decay = {"*.bias", "bias"};
  std::vector<ParameterGroup> groups;
  std::string master = "f32";   // or "split": the bf16 weight and 16 more bits
  std::string update = "late";  // or "early": each parameter when its gradient is complete
};

struct ScheduleSection {
  std::string kind = "constant";
  std::int64_t steps = 0;  // updates that it spans; 0: train.steps
  std::int64_t warmup = 0;
  double final_lr = -1;  // below zero: a tenth of lr (cosine, linear, wsd), 0 of step
  std::int64_t step_size = 1000, decay = 0;
  double gamma = 0.1;
};

struct TrainSection {
  std::int64_t batch = 8, accumulate = 1, steps = 400;
  double epochs = 0;  // above 0: steps follow from it and the data (run_length.h)
  std::int64_t eval_every = 0, eval_batches = 0;  // 0: only at the end; every batch
  std::int64_t checkpoint_every = 0, keep_checkpoints = 3, keep_best = 1, keep_every = 0;
  double checkpoint_minutes = 5;  // besides checkpoint_every
  std::int64_t patience = 0;      // evaluations without a better loss that end the run; 0: none
  std::int64_t sample_every = 0, sample_tokens = 200;
  std::uint64_t seed = 1;
  std::string mode = "graph";            // or "eager"
  std::int64_t threads = 0;              // 0: all
  std::string device;                    // "sim:910B3"; empty: what ALOFT_DEVICE names, or the cpu
  std::vector<std::string> skip_passes;  // of the compiler; for comparing
};

struct Recipe {
  ModelSection model;
  DataSection data;
  PrecisionRecipe precision;
  OptimizerSection optimizer;
  ScheduleSection schedule;
  TrainSection train;
  // key -> "recipe.toml:12", "--set", absent: default. [precision] has one entry a key, too.
  std::map<std::string, std::string> origin;
  Path folder;  // of the file: its relative paths begin here
};

// The origin of what the command line says; it beats the file, always.
inline constexpr const char* kSetOrigin = "--set";

struct Override {
  std::string key, value;  // value: TOML, or a bare string
};

// Reads and checks. UserError E0710 lists every mistake at once, each with file:line and the
// nearest valid name; E0721 where there is no such file. Relative paths begin at the recipe's
// folder, those of an override where the program was started; those of the result are absolute.
Recipe load_recipe(const Path& path, const std::vector<Override>& overrides = {});
// The recipe in the folder of `path` whose name is nearest to its; "" where none is near.
std::string nearest_recipe(const Path& path);
Recipe parse_recipe(std::string_view toml, std::string_view name,
                    const std::vector<Override>& overrides = {});
// "train.steps=5" -> {key, value}. UserError E0713.
Override parse_override(std::string_view text);

// The resolved whole as TOML, each line with its origin: it loads as the same recipe. And as JSON
// for run.json.
std::string print_config(const Recipe& recipe);
nlohmann::json json_of(const Recipe& recipe);

// What the sections mean for the library.
OptimizerSpec optimizer_spec(const Recipe& recipe);
// Whether its kind of update reads momentum and nesterov.
bool reads_momentum(const OptimizerSection& optimizer);
scalar::ScheduleRule schedule_rule(const Recipe& recipe);
models::Gpt2Config model_config(const Recipe& recipe, std::int64_t tokenizer_vocab);

}  // namespace aloft
