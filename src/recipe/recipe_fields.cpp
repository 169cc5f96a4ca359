#include "recipe/recipe_fields.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/process.h"
#include "recipe/tokenizer_keys.h"

namespace aloft {

namespace {

constexpr std::string_view kOtherWeights = "the weights would mean something else";

std::vector<std::string_view> names_of_sizes() {
  std::vector<std::string_view> names;
  for (const models::ModelFamily& f : models::families())
    for (const models::ModelSize& size : f.sizes)
      names.insert(names.end(), size.names.begin(), size.names.end());
  return names;
}

std::vector<std::string_view> names_of_tasks() {
  std::vector<std::string_view> names;
  for (const TaskKind& kind : task_kinds()) names.push_back(kind.name);
  return names;
}

std::vector<std::string_view> names_of_families() {
  std::vector<std::string_view> names;
  for (const models::ModelFamily& f : models::families()) names.push_back(f.name);
  return names;
}

// What a setting of the model means to a run that goes on.
std::pair<OnResume, std::string_view> on_resume(const models::SettingRole& role) {
  // What the data's comes to is compared with the checkpoint's model.
  if (role.is_of_data) return {OnResume::Free, ""};
  if (role.is_of_start)
    return {OnResume::Fixed,
            "the weights were drawn with it when the run began; it changes none now"};
  const std::string_view text = role.resumed.empty() ? kOtherWeights : role.resumed;
  return {role.may_change ? OnResume::Changes : OnResume::Fixed, text};
}

// The keys of [model]: those of its family, where there is such a family.
std::vector<RecipeField> fields_of_model(ModelSection& m) {
  std::vector<RecipeField> out = {
      {OnResume::Fixed, "model.family", "architecture", &m.family, 0, 0, names_of_families(), false,
       kOtherWeights},
      {OnResume::Free, "model.size", "a published size; other keys override it", &m.size, 0, 0,
       names_of_sizes(), true},
      {OnResume::Fixed,
       "model.init",
       "a folder of Hugging Face: it says the model and the tokenizer, and its weights are the "
       "first",
       &m.init,
       0,
       0,
       {},
       false,
       "the run began with its weights; it changes none now"}};
  const models::ModelFamily* family = models::find_family(m.family);
  if (!family) return out;
  for (const models::ModelSetting& s : family->settings) {
    const auto [means, text] = on_resume(s.role);
    RecipeField f{means,
                  "model." + std::string(s.key),
                  s.meaning,
                  {},
                  s.limits.least,
                  s.limits.most,
                  s.limits.words,
                  false,
                  text};
    if (s.role.is_of_data) f.least = 0;
    std::visit([&](auto& value) { f.target = &value; }, m.settings.find(s.key)->second);
    out.push_back(std::move(f));
  }
  return out;
}

// The text of tokens, and the task that they are for.
std::vector<RecipeField> fields_of_text(Recipe& r) {
  using enum OnResume;
  DataSection& d = r.data;
  return {
      {Fixed, "task.kind", "what is learnt; empty: the first of them that takes the model",
       &r.task.kind, 0, 0, names_of_tasks(), true},
      {Data, "data.text", "files, folders, globs", &d.text},
      {Data, "data.jsonl", "files of JSON lines, instead of text", &d.jsonl},
      {Data, "data.validation_jsonl", "the same for validation", &d.validation_jsonl},
      {Data, "data.train_tokens", "a token shard or .bin file, instead of text", &d.train_tokens},
      {Data, "data.validation_tokens", "the same for validation", &d.validation_tokens}};
}

// One row a key: long, and nothing but a table.
// NOLINTNEXTLINE(readability-function-size)
std::vector<RecipeField> fields_of_data(Recipe& r) {
  using enum OnResume;
  DataSection& d = r.data;
  return {
      {Data, "data.validation", "share of the text", &d.validation, 0, 0.99},
      {Changes, "data.sampling", "order of samples", &d.sampling, 0, 0, {"windows", "random"}},
      {Fixed,
       "data.length",
       "tokens of an example; 0: the model's context",
       &d.length,
       0,
       1 << 20,
       {},
       false,
       "the examples of an epoch are counted in windows of so many tokens"},
      {Data, "data.csv", "a table instead of text: a line an example, its label last", &d.csv},
      {Data, "data.images", "images instead of text: an IDX file, as MNIST's", &d.images},
      {Data, "data.labels", "their labels, another IDX file", &d.labels},
      {Data, "data.validation_images", "the same for validation", &d.validation_images},
      {Data, "data.validation_labels", "their labels", &d.validation_labels},
      {Data, "data.labelled",
       "texts to classify instead of text: a line {\"text\", \"label\"} each", &d.labelled},
      {Data, "data.validation_labelled", "the same for validation", &d.validation_labelled},
      {Fixed, "data.shape", "of a table's features: channels, height, width", &d.shape, 1, 65536},
      {Fixed, "data.scale", "factor of the features; of bytes 0.00392157", &d.scale, 1e-30, 1e30},
      {Fixed, "data.outputs", "numbers at a line's end to be predicted; 0: a label", &d.outputs, 0,
       1 << 20},
      {Free, "data.cache", "folder of packed tokens; empty: the user's cache", &d.cache},
  };
}

std::vector<std::string_view> names_of_optimizers() {
  std::vector<std::string_view> names;
  for (const optim::OptimizerKind& kind : optim::optimizer_kinds()) names.push_back(kind.name);
  return names;
}

std::vector<std::string_view> names_of_schedules() {
  std::vector<std::string_view> names;
  for (const scalar::ScheduleKind kind : scalar::kAllScheduleKinds)
    if (!is_of_programs(kind)) names.push_back(name_of(kind));
  return names;
}

// Of the options every kind's: recipe_unused.h says which of them the recipe's kind reads.
std::vector<RecipeField> fields_of_optimizer(OptimizerSection& o) {
  using enum OnResume;
  std::vector<RecipeField> out = {
      {Fixed, "optimizer.kind", "update rule", &o.kind, 0, 0, names_of_optimizers()},
      {Changes, "optimizer.lr", "peak learning rate", &o.lr, 0, kMostRate}};
  const optim::OptimizerKind* kind = optim::find_optimizer_kind(o.kind);
  for (const optim::OptimizerSetting& any : optim::all_optimizer_settings()) {
    // As the recipe's kind says it: one key may mean different things in two formulas.
    const optim::OptimizerSetting* own = kind ? kind->find(any.key) : nullptr;
    const optim::OptimizerSetting& s = own ? *own : any;
    RecipeField f{Changes,      "optimizer." + std::string(s.key), s.meaning, {}, s.limits.least,
                  s.limits.most};
    f.resumed = s.resumed;
    f.is_below = s.limits.is_below;
    std::visit([&](auto& value) { f.target = &value; }, o.options.find(s.key)->second);
    out.push_back(std::move(f));
  }
  const std::vector<RecipeField> rest = {
      {Changes, "optimizer.weight_decay", "of weights; norms and no_decay excepted",
       &o.weight_decay, 0, kMostDecay},
      {Changes, "optimizer.maximize", "uphill: by the gradients' negatives", &o.maximize},
      {Changes, "optimizer.clip_norm", "largest global norm of the gradients; 0: none",
       &o.clip_norm, 0, kMostClip},
      {Changes, "optimizer.clip_adaptive",
       "largest norm of a row's gradient, as a share of the row; 0: none", &o.clip_adaptive, 0,
       kMostClip},
      {Changes, "optimizer.clip_value", "largest size of a gradient's element; 0: none",
       &o.clip_value, 0, kMostClip},
      {Changes, "optimizer.no_decay", "name patterns that do not decay; norms never do",
       &o.no_decay},
      {Fixed, "optimizer.freeze", "name patterns of parameters that stay as they begin", &o.freeze},
      {Fixed, "optimizer.rest", "name patterns of matrices that are taken for none: tables, heads",
       &o.rest},
      {Changes,  // a checkpoint loads into either form
       "optimizer.master",
       "fp32 masters of O2: their own, or bf16 weights and 16 more bits",
       &o.master,
       0,
       0,
       {"f32", "split"}},
      {Fixed,
       "optimizer.states",
       "of the update rule: bf16 takes half the memory, 8bit a quarter",
       &o.states,
       0,
       0,
       {"f32", "bf16", "8bit"}},
      {Changes,
       "optimizer.rounding",
       "of bf16 weights without masters (O3:bf16): stochastic loses no small step",
       &o.rounding,
       0,
       0,
       {"nearest", "stochastic"}},
      {Fixed,
       "optimizer.average",
       "a mean of the weights kept beside them: ema fades, swa is of all alike",
       &o.average,
       0,
       0,
       {"none", "ema", "swa"}},
      {.on_resume = Changes,
       .key = "optimizer.average_decay",
       .doc = "share of the old mean in the new one (ema)",
       .target = &o.average_decay,
       .least = 0,
       .most = 1,
       .is_below = true},
      {Changes, "optimizer.average_from", "updates before which the mean is the weights themselves",
       &o.average_from, 0, 1e15},
      {Changes,
       "optimizer.update",
       "late, or early: as soon as a gradient is complete; no clipping, no skipping",
       &o.update,
       0,
       0,
       {"late", "early"}},
      {Changes, "optimizer.groups", "parameters (name patterns) with numbers of their own",
       &o.groups}};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

// One row a key: long, and nothing but a table.
// NOLINTNEXTLINE(readability-function-size)
std::vector<RecipeField> fields_of_training(Recipe& r) {
  constexpr double kMany = 1e15;
  using enum OnResume;
  ScheduleSection& s = r.schedule;
  TrainSection& t = r.train;
  return {
      {Changes, "schedule.kind", "of the learning rate", &s.kind, 0, 0, names_of_schedules()},
      {Changes, "schedule.steps", "updates that it spans; 0: train.steps", &s.steps, 0, kMany},
      {Changes, "schedule.warmup", "updates of linear warm-up", &s.warmup, 0, kMany},
      {Changes, "schedule.final_lr",
       "at the end; below zero: a tenth of lr, or 0 where there is no end", &s.final_lr, -1, 1e6},
      {Changes, "schedule.step_size",
       "updates between drops (step), at start_factor (low-start), of a rise (triangular)",
       &s.step_size, 1, kMany},
      {Changes, "schedule.step_down", "updates of a fall (triangular); 0: as of a rise",
       &s.step_down, 0, kMany},
      {Changes, "schedule.start_factor", "share of lr that it begins with (linear, low-start)",
       &s.start_factor, 0, 1},
      {Changes, "schedule.gamma",
       "factor of a drop (step, multi-step, exponential, plateau), of each update (exp-range)",
       &s.gamma, 0, 1},
      {Changes, "schedule.decay", "updates of the final decay (wsd); 0: a fifth", &s.decay, 0,
       kMany},
      {Changes, "schedule.power", "of what is left of the run (polynomial)", &s.power, 0, 100},
      {Changes, "schedule.div", "lr over the rate that it starts with (one-cycle)", &s.div, 1, 1e6},
      {Changes, "schedule.final_div", "that over the rate that it ends with (one-cycle)",
       &s.final_div, 1, 1e9},
      {Changes, "schedule.milestones", "updates before each drop, rising (multi-step)",
       &s.milestones, 0, kMany},
      {Changes, "schedule.cycle", "updates of the first cycle (cosine-restarts)", &s.cycle, 1,
       kMany},
      {Changes, "schedule.growth", "of cycles, one to the next (cosine-restarts)", &s.growth, 1,
       1000},
      {Changes, "schedule.patience", "evaluations without a better loss before a drop (plateau)",
       &s.patience, 0, kMany},
      {Changes, "schedule.cooldown", "evaluations behind a drop that do not count (plateau)",
       &s.cooldown, 0, kMany},
      {Changes, "schedule.threshold", "by what share of the best a loss is better (plateau)",
       &s.threshold, 0, 0.999},
      {Changes, "train.batch", "sequences a micro-batch", &t.batch, 1, 1 << 20},
      {Changes, "train.accumulate", "micro-batches an update", &t.accumulate, 1, 1 << 20},
      {Free, "train.steps", "steps of the run, skipped ones included", &t.steps, 0, kMany},
      {Free, "train.epochs", "passes over the training tokens, instead of steps; 0: steps count",
       &t.epochs, 0, 1e9},
      {Course, "train.eval_every", "steps between evaluations; 0: at the end", &t.eval_every, 0,
       kMany},
      {Changes, "train.eval_batches", "batches an evaluation; 0: the whole split", &t.eval_batches,
       0, kMany},
      {Course, "train.patience",
       "evaluations in a row without a better loss that end the run; 0: none", &t.patience, 0,
       kMany},
      {Changes,
       "train.on_nonfinite",
       "a step whose loss or gradients are not finite: pass it over, end the run, or go back",
       &t.on_nonfinite,
       0,
       0,
       {"skip", "stop", "rollback"}},
      {Changes,
       "train.on_spike",
       "a loss far above those before it: nothing, or back to the last healthy checkpoint",
       &t.on_spike,
       0,
       0,
       {"ignore", "rollback"}},
      {Changes, "train.spike_factor", "how many times the median of the steps before is a spike",
       &t.spike_factor, 1, 1e6},
      {Changes, "train.spike_window", "steps before it that a loss is compared with",
       &t.spike_window, 2, 10000},
      {Changes, "train.rollbacks",
       "returns in a row that end the run: none of them got past the trouble", &t.rollbacks, 1,
       1000},
      {Course, "train.checkpoint_every",
       "steps between checkpoints; 0: by the clock, and at the end", &t.checkpoint_every, 0, kMany},
      {Course, "train.checkpoint_minutes", "minutes between checkpoints, at most; 0: only by steps",
       &t.checkpoint_minutes, 0, 1e6},
      {Free, "train.checkpoint_copy",
       "training goes on while a copy of its state is written, which needs more memory; false: it "
       "waits",
       &t.checkpoint_copy},
      {Course, "train.keep_checkpoints", "newest checkpoints kept; 0: all", &t.keep_checkpoints, 0,
       kMany},
      {Course, "train.keep_best", "checkpoints with the lowest validation loss kept besides",
       &t.keep_best, 0, kMany},
      {Course, "train.keep_every", "a checkpoint every so many steps is kept for good; 0: none",
       &t.keep_every, 0, kMany},
      {Course, "train.sample_every", "steps between samples; 0: at the end", &t.sample_every, 0,
       kMany},
      {Course, "train.sample_tokens", "length of a sample", &t.sample_tokens, 0, 1 << 20},
      {Changes, "train.seed", "of everything random", &t.seed, 0, 9e15},
      {Free, "train.mode", "compiled or op by op", &t.mode, 0, 0, {"graph", "eager"}},
      {Free, "train.device", "what to run on, as `aloft devices` lists it: cpu, sim:910B3",
       &t.device},
      {Free, "train.threads", "0: all the machine has", &t.threads, 0, kMostThreads},
      {Free,
       "train.recompute",
       "what the backward pass computes again instead of keeping it: less memory, the same bits",
       &t.recompute,
       0,
       0,
       {"none", "elementwise"}},
      {Changes, "train.skip_passes",
       "passes left out, such as fuse-elementwise; see `aloft passes`", &t.skip_passes},
  };
}

std::vector<RecipeField> fields_of_probe(ProbeSection& p) {
  constexpr double kMany = 1e15;
  using enum OnResume;
  return {
      {Course,
       "probe.task",
       "what is looked at while the run trains, and written to probe/ in its directory",
       &p.task,
       0,
       0,
       {"none", "statistics", "tensor", "overflow", "structure", "acc_check"}},
      {Course,
       "probe.level",
       "of what: calls of modules and parameters, every op, or both",
       &p.level,
       0,
       0,
       {"module", "op", "mix"}},
      {Course, "probe.at", "steps that are looked at, counted from 0; empty: those of probe.every",
       &p.at, 0, kMany},
      {Course, "probe.every", "every how many-th step is looked at, from step 0 on", &p.every, 1,
       kMany},
      {Course, "probe.histograms", "how many elements have each exponent is counted, too",
       &p.histograms},
      {Course, "probe.attention",
       "at levels op and mix the scores and probabilities inside attentions, computed once more",
       &p.attention},
      {Course, "probe.list",
       "whose values are written, by names or parts of them, or patterns of taps; empty: all",
       &p.list},
      {Course, "probe.scope", "... from the first of two entries to the second; empty: all",
       &p.scope},
      {Course,
       "probe.data_mode",
       "... of what: forward, backward, input, output; empty: all",
       &p.data_mode,
       0,
       0,
       {"forward", "backward", "input", "output", "all"}},
      {Course,
       "probe.format",
       "... the format of their files",
       &p.format,
       0,
       0,
       {"pt", "npy", "safetensors"}},
      {Course,
       "probe.summary",
       "... md5, xor: checksums of their bytes instead of files",
       &p.summary,
       0,
       0,
       {"statistics", "md5", "xor"}},
      {Course, "probe.histogram_every", "every how many-th step has these counts, from step 0 on",
       &p.histogram_every, 1, kMany},
  };
}

std::vector<RecipeField> fields_of_monitor(MonitorSection& m) {
  constexpr double kMany = 1e15, kLongest = 10000;
  using enum OnResume;
  std::vector<RecipeField> out = {
      {Course, "monitor.on",
       "trends of each layer are taken while the run trains, and alerts raised", &m.on},
      {Course, "monitor.every", "every how many-th step is looked at, from step 0 on", &m.every, 1,
       kMany},
      {Course, "monitor.exponents", "how many elements have each exponent is counted, too",
       &m.exponents},
  };
  const auto rule = [&](const char* name, MonitorRule& r, std::string_view threshold,
                        std::string_view window, double most) {
    const std::string key = std::string("monitor.") + name;
    out.push_back({Course, key + ".threshold", threshold, &r.threshold, 0, most});
    out.push_back({Course, key + ".window", window, &r.window, 0, kLongest});
  };
  rule("norm_jump", m.norm_jump,
       "a layer's gradient norm of more than so many times the median of its looks before",
       "... of which so many count; 0: no alert", 1e6);
  rule("dead_layer", m.dead_layer,
       "so large a share of what a layer gives is 0, or all of its gradients and not of others",
       "... in so many looks in a row; 0: no alert", 1);
  rule("saturation", m.saturation,
       "more than this share of a layer's values is at the largest number of its type or beyond",
       "... in so many looks in a row; 0: no alert", 1);
  rule("nan", m.nan, "more than so many NaN in a layer, or a loss that is not finite",
       "... in so many looks or steps in a row; 0: no alert", 1e15);
  rule("loss_spike", m.loss_spike,
       "a loss of more than so many times the median of the steps before",
       "... of which so many count; 0: no alert", 1e6);
  return out;
}

std::vector<RecipeField> fields_of_profile(ProfileSection& p) {
  constexpr double kMost = 1000;
  using enum OnResume;
  return {
      {Free, "profile.steps",
       "steps whose instructions are timed, for profile.json in the run's directory; 0: none",
       &p.steps, 0, kMost},
      {Free, "profile.start", "... behind so many of the steps that this start of the run makes",
       &p.start, 0, 1e15},
  };
}

}  // namespace

std::vector<RecipeField> recipe_fields(Recipe& recipe) {
  std::vector<RecipeField> out = fields_of_model(recipe.model);
  for (std::vector<RecipeField> more :
       {fields_of_text(recipe), tokenizer_fields(recipe.data.tokenizer), fields_of_data(recipe),
        fields_of_optimizer(recipe.optimizer), fields_of_training(recipe),
        fields_of_probe(recipe.probe), fields_of_monitor(recipe.monitor),
        fields_of_profile(recipe.profile)})
    std::move(more.begin(), more.end(), std::back_inserter(out));
  return out;
}

}  // namespace aloft
