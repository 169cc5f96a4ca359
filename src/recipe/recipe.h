// A recipe: everything that decides a training run, from a TOML file, `--set` overrides and
// defaults. recipe_fields.cpp lists every key once: reading, checking, printing and help follow it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/pack.h"
#include "models/model_spec.h"
#include "optim/kind.h"
#include "optim/spec.h"
#include "precision/recipe.h"
#include "scalar/schedule.h"
#include "tasks/task.h"

namespace aloft {

// [model]. What each key means, and what it may be, is in `aloft recipes`.
struct ModelSection {
  ModelSection();      // the first family of the catalogue, as a recipe begins with it
  std::string family;  // the architecture: a name of models/catalog.inc
  std::string size;    // "gpt2-124m": the settings of a published size
  std::string init;  // a folder of Hugging Face that says all of this, and whose weights are first
  SettingValues settings;  // all of the family's; 0 of what is the data's to say: as it says

  // A setting that is a whole number, or what 0 of it stands for; `otherwise` where the family has
  // none of the key.
  std::int64_t whole(std::string_view key, std::int64_t otherwise = 0) const;
};

// [task].
struct TaskSection {
  std::string kind;  // a name of tasks/catalog.inc; empty: the first that takes the model
};

// [data].
struct DataSection {
  std::vector<std::string> text;                // files, folders, globs
  std::vector<std::string> jsonl;               // files of JSON lines, instead of text
  std::vector<std::string> validation_jsonl;    // the same for validation
  std::string train_tokens, validation_tokens;  // shards made elsewhere, instead of text
  TokenizerSpec tokenizer;                      // made from the text, or loaded
  double validation = 0.05;                     // share of the text
  std::string sampling = "windows";             // or "random": an independent offset each
  std::int64_t length = 0;                      // tokens of an example; 0: the model's context
  std::string cache;                            // "": a folder in the user's cache directory
  // Instead of text and tokens: a table, or images and labels in IDX files; files of their own for
  // validation, or none.
  std::string csv, images, labels, validation_images, validation_labels;
  std::string labelled, validation_labelled;  // instead: texts with a label each, a JSON a line
  std::vector<std::int64_t> shape;            // of a table's features: channels, height, width
  double scale = 1;                           // factor of the features
  std::int64_t outputs = 0;                   // numbers at a line's end to be predicted; 0: a label
};

// [optimizer]. What each key means, and what it may be, is in `aloft recipes`.
struct OptimizerSection {
  OptimizerSection();          // optim::kUsualOptimizer, as a recipe begins with it
  std::string kind;            // the formula: a name of optim/catalog.inc
  double lr = 0;               // the peak of the schedule; what it begins with is the kind's
  SettingValues options;       // of the kind's formula, and what others begin with
  double weight_decay = 0.01;  // share a rate of 1 takes off a weight
  bool maximize = false;       // uphill
  double clip_norm = 1.0;      // of all gradients together; 0: never
  double clip_adaptive = 0, clip_value = 0;  // of rows, as shares of the weights'; of elements
  std::vector<std::string> no_decay = {"*.bias", "bias"};  // patterns of names
  std::vector<ParameterGroup> groups;                      // with a rate or decay of their own
  std::vector<std::string> freeze;   // patterns of names: they are not trained
  std::vector<std::string> rest;     // OptimizerSpec::rest, if it is read
  std::string master = "f32";        // or "split": the bf16 weight and 16 more bits
  std::string states = "f32";        // or "bf16", "8bit": a half or a quarter of the memory
  std::string rounding = "nearest";  // or "stochastic": of bf16 weights without masters
  std::string average = "none";      // or "ema", "swa": a mean of the weights beside them
  double average_decay = 0.999;      // share of the old mean (ema)
  std::int64_t average_from = 0;     // updates before which the mean is the weights
  std::string update = "late";       // or "early": each parameter when its gradient is complete

  void begin_with(const optim::OptimizerKind& other);  // kind, lr, options and rest
};

// [schedule].
struct ScheduleSection {
  std::string kind = "constant";             // a name of scalar/schedule.h
  std::int64_t steps = 0;                    // updates that it spans; 0: train.steps
  std::int64_t warmup = 0;                   // updates
  double final_lr = -1;                      // below zero: a tenth of lr, or 0 of what falls freely
  std::int64_t step_size = 1000, decay = 0;  // updates between steps; updates of the decay (wsd)
  std::int64_t step_down = 0;                // updates of a fall (triangular); 0: of a rise
  double start_factor = 1;                   // share of lr (linear, low-start)
  double gamma = 0.1;                        // factor of each step
  double power = 1;                          // polynomial
  std::vector<std::int64_t> milestones;      // updates before each drop (multi-step)
  std::int64_t cycle = 1000, growth = 1;     // updates of the first; of the next (cosine-restarts)
  std::int64_t patience = 10, cooldown = 0;  // evaluations (plateau)
  double threshold = 1e-4;                   // share of the best loss (plateau)
  // lr over where it starts, and that over where it ends (one-cycle).
  double div = 25, final_div = 1e4;
};

// [train].
struct TrainSection {
  std::int64_t batch = 8, accumulate = 1, steps = 400;  // sequences; micro-batches a step
  double epochs = 0;  // above 0: steps follow from it and the data (run_length.h)
  std::int64_t eval_every = 0, eval_batches = 0;  // 0: only at the end; every batch
  // Steps; how many of the newest and of the best stay (0: all; none); steps that stay for good.
  std::int64_t checkpoint_every = 0, keep_checkpoints = 3, keep_best = 1, keep_every = 0;
  double checkpoint_minutes = 5;  // besides checkpoint_every
  bool checkpoint_copy = true;    // training goes on while a copy of its state is written
  std::int64_t patience = 0;      // evaluations without a better loss that end the run; 0: none
  // What follows a step without finite numbers: "skip", "stop" or "rollback"; and a loss far above
  // those before it: "ignore" or "rollback".
  std::string on_nonfinite = "skip", on_spike = "ignore";
  double spike_factor = 2;  // far above: more than so many times the median of the steps before,
  std::int64_t spike_window = 50;  // of which so many count
  std::int64_t rollbacks = 5;      // in a row, none of which got past the trouble, end the run
  std::int64_t sample_every = 0, sample_tokens = 200;  // steps, 0: at the end alone; 0: none
  std::uint64_t seed = 1;                              // of all that is random
  std::string mode = "graph";                          // or "eager"
  std::int64_t threads = 0;                            // 0: all
  std::string device;                    // "sim:910B3"; empty: what ALOFT_DEVICE names, or the cpu
  std::vector<std::string> skip_passes;  // of the compiler; for comparing
  // What the backward pass computes again rather than have it kept: "none" or "elementwise".
  std::string recompute = "none";
};

// [probe]: what is looked at while a run trains.
struct ProbeSection {
  std::string task = "none";     // or "statistics", "tensor", "overflow", "structure"
  std::string level = "module";  // or "op", or "mix": both
  std::vector<std::int64_t> at;  // steps that are looked at, from 0 on; empty: those of `every`
  std::int64_t every = 1;        // every how many-th step is looked at, from step 0 on
  bool histograms = false;       // how many elements have each exponent is counted
  std::int64_t histogram_every = 16;  // ... in every how many-th step
  bool attention = false;  // scores and probabilities of attentions are computed once more
  // Whose values are written, by names or parts of names as dump.json has them, at level "op" by
  // patterns of taps, at "mix" by either; between which two entries, if any; of which lists.
  std::vector<std::string> list, scope, data_mode;
  std::string format = "pt";           // of the files of "tensor": or "npy", "safetensors"
  std::string summary = "statistics";  // or "md5": checksums instead of files
};

// A rule of the monitor.
struct MonitorRule {
  double threshold = 0;     // from where on it raises an alert
  std::int64_t window = 0;  // over how many looks or steps; 0: never
};

// [monitor]: what is said of each layer while a run trains, and when an alert is raised.
struct MonitorSection {
  bool on = false;                   // whether anything is looked at
  std::int64_t every = 20;           // every how many-th step is looked at, from step 0 on
  bool exponents = true;             // how many elements have each exponent is counted, too
  MonitorRule norm_jump{10, 10};     // times the median of a layer's gradient norms before
  MonitorRule dead_layer{0.99, 3};   // share of zeros of what a layer gives, or no gradient
  MonitorRule saturation{0.001, 1};  // share of values at the largest number of their type
  MonitorRule nan{0, 1};             // NaN in a layer, or a loss that is not finite
  MonitorRule loss_spike{2, 50};     // times the median of the losses before
};

// [profile]: steps whose instructions are timed.
struct ProfileSection {
  std::int64_t steps = 0;  // how many; 0: none
  std::int64_t start = 3;  // steps before them, counted from where the run starts or goes on
};

// What is looked at in a step: what its program takes. Trends: what the monitor needs, in steps
// that the probe passes over; where the probe looks, the monitor reads of its program.
enum class Look : std::uint8_t { Nothing, Statistics, Exponents, Trends };
// Of step `step`, counted from 0; Nothing where probe.task is "none" and no monitor looks.
Look look_at(const ProbeSection& probe, std::int64_t step, const MonitorSection& monitor = {});
// Those that steps of a run have, each once, Nothing first where some steps have it.
std::vector<Look> looks_of(const ProbeSection& probe, const MonitorSection& monitor = {});
// Whether the monitor looks at the step.
inline bool monitors(const MonitorSection& monitor, std::int64_t step) {
  return monitor.on && step % monitor.every == 0;
}

// Whether the rules may send a run back to a checkpoint.
inline bool may_roll_back(const TrainSection& t) {
  return t.on_nonfinite == "rollback" || t.on_spike == "rollback";
}

// Everything that decides a run: a section a member, as load_recipe() or parse_recipe() gives it.
struct Recipe {
  ModelSection model;          // the architecture
  TaskSection task;            // what is learnt
  DataSection data;            // what is learnt from
  PrecisionRecipe precision;   // types of values, loss scaling
  OptimizerSection optimizer;  // the update
  ScheduleSection schedule;    // of the learning rate
  TrainSection train;          // how long, how often
  ProbeSection probe;          // what is looked at
  MonitorSection monitor;      // what is said of each layer
  ProfileSection profile;      // which steps are timed
  // key -> "recipe.toml:12", "--set", absent: default. [precision] has one entry a key, too.
  std::map<std::string, std::string> origin;
  Path folder;  // of the file: its relative paths begin here
};

// The origin of what the command line says; it beats the file, always.
inline constexpr const char* kSetOrigin = "--set";

// A key that is given another value than the file says.
struct Override {
  std::string key, value;  // value: TOML, or a bare string
};

// Reads and checks. UserError E0710 lists every mistake at once, each with file:line and the
// nearest valid name; E0721 where there is no such file. Relative paths begin at the recipe's
// folder, those of an override where the program was started; those of the result are absolute. A
// folder of Hugging Face is the recipe that has it as model.init and says no more. UserError E0718
// and DataError E0631, E0632 of a folder that model.init names (models/huggingface.h).
Recipe load_recipe(const Path& path, const std::vector<Override>& overrides = {});
// The recipe in the folder of `path` whose name is nearest to its; "" where none is near.
std::string nearest_recipe(const Path& path);
Recipe parse_recipe(std::string_view toml, std::string_view name,
                    const std::vector<Override>& overrides = {});
// "train.steps=5" -> {key, value}. UserError E0713.
Override parse_override(std::string_view text);

// The resolved whole as TOML, each line with its origin: it loads as the same recipe.
std::string print_config(const Recipe& recipe);

// What the sections mean for the library.
OptimizerSpec optimizer_spec(const Recipe& recipe);
// The formula of [optimizer]; none where its options do not fit together.
UpdateRule optimizer_rule(const OptimizerSection& optimizer);
// The device of train.device; null where it is empty. UserError E0332, with where that was set.
Device* device_of(const Recipe& recipe);
scalar::ScheduleRule schedule_rule(const Recipe& recipe);
// The family and the settings as they stand, those of the data perhaps 0.
models::ModelSpec model_spec(const Recipe& recipe);
// The same with what the data says: values of settings by key, such as vocab. UserError E0716 where
// a setting says otherwise.
models::ModelSpec model_spec(const Recipe& recipe, const SettingValues& of_data);
// What the recipe's model is to learn: task.kind, or the first kind that takes it.
const TaskKind& task_kind(const Recipe& recipe);
// Tokens of an example: data.length, or the context of a model that reads sequences; 1 of any
// other.
std::int64_t tokens_an_example(const Recipe& recipe);
// What an example counts for in the unit of the task: its tokens, or 1 where examples are counted.
std::int64_t units_an_example(const Recipe& recipe);

}  // namespace aloft
