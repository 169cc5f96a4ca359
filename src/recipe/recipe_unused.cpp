#include "recipe/recipe_unused.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "recipe/recipe_fields.h"
#include "recipe/tokenizer_keys.h"

namespace aloft {
namespace {

using nlohmann::json;

json value_of(Recipe recipe, std::string_view key) {
  for (const RecipeField& f : recipe_fields(recipe))
    if (f.key == key) return std::visit([](const auto* v) { return json(*v); }, f.target);
  return nullptr;
}

// "eval_every = 0", "nesterov = false", "none", no patterns: what is off asks for nothing.
bool is_off(const json& value) {
  return value == false || value == 0 || value == "" || value == "none" || value == json::array();
}

// `key` is read only where `selector` has one of `values`.
struct Condition {
  std::string key;
  std::string_view selector;
  std::vector<std::string_view> values;
};

std::vector<std::string_view> schedules_that(bool (*holds)(scalar::ScheduleKind)) {
  std::vector<std::string_view> names;
  for (const scalar::ScheduleKind kind : scalar::kAllScheduleKinds)
    if (holds(kind)) names.push_back(name_of(kind));
  return names;
}

std::vector<std::string_view> kinds_with_rest() {
  std::vector<std::string_view> names;
  for (const optim::OptimizerKind& kind : optim::optimizer_kinds())
    if (!kind.usual_rest.empty()) names.push_back(kind.name);
  return names;
}

const std::vector<Condition>& conditions() {
  static const std::vector<Condition> all = [] {
    std::vector<Condition> some = {
        {"schedule.step_size",
         "schedule.kind",
         {"step", "low-start", "triangular", "triangular-2", "exp-range"}},
        {"schedule.step_down", "schedule.kind", schedules_that(scalar::is_triangle)},
        {"schedule.start_factor", "schedule.kind", {"linear", "low-start"}},
        {"schedule.gamma",
         "schedule.kind",
         {"step", "multi-step", "exponential", "plateau", "exp-range"}},
        {"schedule.decay", "schedule.kind", {"wsd"}},
        {"schedule.power", "schedule.kind", {"polynomial"}},
        {"schedule.div", "schedule.kind", {"one-cycle"}},
        {"schedule.final_div", "schedule.kind", {"one-cycle"}},
        {"schedule.milestones", "schedule.kind", {"multi-step"}},
        {"schedule.cycle", "schedule.kind", {"cosine-restarts"}},
        {"schedule.growth", "schedule.kind", {"cosine-restarts"}},
        {"schedule.patience", "schedule.kind", {"plateau"}},
        {"schedule.cooldown", "schedule.kind", {"plateau"}},
        {"schedule.threshold", "schedule.kind", {"plateau"}},
        {"schedule.final_lr", "schedule.kind", schedules_that([](scalar::ScheduleKind kind) {
           using enum scalar::ScheduleKind;
           return kind != Constant && kind != OneCycle && kind != LowStart;
         })},
        {"schedule.steps", "schedule.kind", schedules_that(scalar::spans_total)},
        {"train.recompute", "train.mode", {"graph"}},
        {"train.skip_passes", "train.mode", {"graph"}},
        {"probe.level", "probe.task", {"statistics", "tensor", "structure"}},
        {"probe.at", "probe.task", {"statistics", "tensor", "overflow", "acc_check"}},
        {"probe.every", "probe.task", {"statistics", "tensor", "overflow", "acc_check"}},
        {"probe.histograms", "probe.task", {"statistics", "tensor"}},
        {"probe.attention", "probe.task", {"statistics", "tensor", "structure"}},
        {"probe.attention", "probe.level", {"op", "mix"}},
        {"probe.list", "probe.task", {"statistics", "tensor", "acc_check"}},
        {"probe.scope", "probe.task", {"statistics", "tensor"}},
        {"probe.data_mode", "probe.task", {"statistics", "tensor"}},
        {"probe.format", "probe.task", {"tensor"}},
        {"probe.format", "probe.summary", {"statistics"}},
        {"probe.summary", "probe.task", {"tensor"}},
        {"probe.histogram_every", "probe.task", {"statistics", "tensor"}},
        {"train.spike_factor", "train.on_spike", {"rollback"}},
        {"train.spike_window", "train.on_spike", {"rollback"}},
        {"optimizer.average_decay", "optimizer.average", {"ema"}},
        {"optimizer.average_from", "optimizer.average", {"ema", "swa"}},
        {"optimizer.rest", "optimizer.kind", kinds_with_rest()},
    };
    for (const optim::OptimizerSetting& s : optim::all_optimizer_settings())
      some.push_back(
          {"optimizer." + std::string(s.key), "optimizer.kind", optim::kinds_with(s.key)});
    return some;
  }();
  return all;
}

constexpr std::string_view kOfTheMonitor[] = {"monitor.every",
                                              "monitor.exponents",
                                              "monitor.norm_jump.threshold",
                                              "monitor.norm_jump.window",
                                              "monitor.dead_layer.threshold",
                                              "monitor.dead_layer.window",
                                              "monitor.saturation.threshold",
                                              "monitor.saturation.window",
                                              "monitor.nan.threshold",
                                              "monitor.nan.window",
                                              "monitor.loss_spike.threshold",
                                              "monitor.loss_spike.window"};

class Search {
 public:
  Search(const Recipe& recipe, bool all) : recipe_(recipe), all_(all) {}

  std::vector<UnusedKey> unused() {
    for (const Condition& c : conditions()) {
      const auto kind = value_of(recipe_, c.selector).get<std::string>();
      if (std::find(c.values.begin(), c.values.end(), kind) == c.values.end())
        report(c.key, c.selector,
               fmt::format("does nothing where {} is {}{}", c.selector, kind,
                           c.selector == "probe.task" && kind == "none"
                               ? fmt::format("; try task = \"{}\"", c.values.front())
                               : ""));
    }
    report_settings_of_tokenizers();
    const DataSection& d = recipe_.data;
    report_arrays();
    report_jsonl();
    report_labelled();
    if (is_arrays() || is_jsonl()) {
    } else if (d.train_tokens.empty()) {
      report("data.validation_tokens", "data.train_tokens", "needs data.train_tokens beside it");
    } else {
      report("data.text", "data.train_tokens", "is not read where data.train_tokens is given");
      report("data.validation", "data.train_tokens",
             "divides text; beside data.train_tokens it is data.validation_tokens that counts");
      report("data.cache", "data.train_tokens",
             "is where text is packed; data.train_tokens is read where it lies");
    }
    report_validation();
    report_kept();
    if (!may_roll_back(recipe_.train))
      report("train.rollbacks", "train.on_spike",
             "counts returns to a checkpoint; neither train.on_nonfinite nor train.on_spike asks "
             "for one");
    report_samples();
    // Whoever says which of them: a run would look at nothing.
    if (recipe_.train.mode == "eager" && recipe_.probe.task == "acc_check")
      found_.push_back(
          {"probe.task",
           "\"acc_check\" looks into compiled programs; there is none where train.mode is eager"});
    if (!recipe_.probe.at.empty())
      report("probe.every", "probe.at",
             "does nothing where probe.at says which steps are looked at");
    if (!recipe_.probe.histograms)
      report("probe.histogram_every", "probe.histograms",
             "does nothing where probe.histograms is false");
    if (!recipe_.monitor.on)
      for (const std::string_view key : kOfTheMonitor)
        report(key, "monitor.on", "does nothing where monitor.on is false");
    if (recipe_.profile.steps == 0)
      report("profile.start", "profile.steps", "does nothing where profile.steps is 0");
    report_empty();
    report_idle_options();
    if (recipe_.optimizer.lr == 0)
      report("schedule.final_lr", "optimizer.lr", "is a part of optimizer.lr, which is 0");
    if (recipe_.optimizer.weight_decay == 0)
      report("optimizer.no_decay", "optimizer.weight_decay",
             "does nothing where optimizer.weight_decay is 0");
    if (is_arrays()) return std::move(found_);
    if (!d.train_tokens.empty() && !is_jsonl())
      for (const std::string& key : tokenizer_keys({"data.tokenizer.kind"}))
        report(key, "data.train_tokens",
               "makes a tokenizer of text; the one that made data.train_tokens is "
               "data.tokenizer.path");
    else if (!d.tokenizer.path.empty())
      for (const std::string& key : tokenizer_setting_keys())
        report(key, "data.tokenizer.path", "does nothing where data.tokenizer.path names one");
    return std::move(found_);
  }

 private:
  // These, and the settings of every kind.
  static std::vector<std::string> tokenizer_keys(std::vector<std::string> keys) {
    const std::vector<std::string>& settings = tokenizer_setting_keys();
    keys.insert(keys.end(), settings.begin(), settings.end());
    return keys;
  }

  void report_settings_of_tokenizers() {
    TokenizerSpec spec = recipe_.data.tokenizer;
    for (const RecipeField& f : tokenizer_fields(spec))
      if (!f.kinds.empty() && std::find(f.kinds.begin(), f.kinds.end(), spec.kind) == f.kinds.end())
        report(f.key, "data.tokenizer.kind",
               fmt::format("does nothing where data.tokenizer.kind is {}", spec.kind));
  }

  bool is_arrays() const { return !recipe_.data.csv.empty() || !recipe_.data.images.empty(); }

  bool is_jsonl() const { return !is_arrays() && !recipe_.data.jsonl.empty(); }

  // Beside lines no text is read, and of them all are, in whatever order.
  void report_jsonl() {
    if (recipe_.data.jsonl.empty() && !is_arrays())
      report("data.validation_jsonl", "data.jsonl", "needs data.jsonl beside it");
    if (!is_jsonl()) return;
    for (const char* key : {"data.text", "data.train_tokens", "data.validation_tokens"})
      report(key, "data.jsonl", "is not read where data.jsonl is given");
    if (!recipe_.data.validation_jsonl.empty())
      report("data.validation", "data.validation_jsonl",
             "divides lines; beside data.validation_jsonl it is those that count");
    report("data.sampling", "data.jsonl", "is of windows of text; data.jsonl has examples");
  }

  // Of text and tokens nothing is read beside arrays, and of arrays nothing beside those.
  void report_arrays() {
    const DataSection& d = recipe_.data;
    const char* named = !d.images.empty() ? "data.images" : "data.csv";
    if (is_arrays()) {
      for (const std::string& key :
           tokenizer_keys({"data.text", "data.jsonl", "data.validation_jsonl", "data.train_tokens",
                           "data.validation_tokens", "data.tokenizer.kind", "data.tokenizer.path",
                           "data.sampling", "data.length", "data.cache"}))
        report(key, named, fmt::format("is of tokens, and is not read where {} is given", named));
      if (!d.images.empty() && !d.csv.empty())
        report("data.csv", "data.images", "is not read where data.images is given");
      if (!d.validation_images.empty())
        report("data.validation", "data.validation_images",
               "divides examples; beside data.validation_images it is those that count");
    }
    if (d.images.empty())
      for (const char* key : {"data.labels", "data.validation_images", "data.validation_labels"})
        report(key, "data.images", "needs data.images beside it");
    if (d.csv.empty() || !d.images.empty())
      for (const char* key : {"data.shape", "data.outputs"})
        report(key, "data.csv", "is of tables, and needs data.csv beside it");
    if (!is_arrays()) report("data.scale", "data.csv", "needs data.csv or data.images beside it");
  }

  // Beside texts with labels nothing else is read.
  void report_labelled() {
    const DataSection& d = recipe_.data;
    if (d.labelled.empty())
      return report("data.validation_labelled", "data.labelled", "needs data.labelled beside it");
    for (const char* key : {"data.text", "data.train_tokens", "data.validation_tokens",
                            "data.sampling", "data.cache", "data.csv", "data.images"})
      report(key, "data.labelled", "is not read where data.labelled is given");
    if (!d.validation_labelled.empty())
      report("data.validation", "data.validation_labelled",
             "divides examples; beside data.validation_labelled it is those that count");
  }

  // What counts evaluations needs some.
  void report_validation() {
    const DataSection& d = recipe_.data;
    if (!d.labelled.empty() && !d.validation_labelled.empty()) return;
    if (is_arrays() && !d.validation_images.empty()) return;
    if (is_jsonl() && !d.validation_jsonl.empty()) return;
    const bool is_text = is_arrays() || is_jsonl() || d.train_tokens.empty();
    if (is_text ? d.validation > 0 : !d.validation_tokens.empty()) return;
    const char* selector = is_text ? "data.validation" : "data.train_tokens";
    const auto asked = [&](const char* key, std::int64_t count) {
      if (count > 0)
        report(key, selector,
               fmt::format("counts evaluations; there are none without {}",
                           is_jsonl() ? "data.validation above 0 or data.validation_jsonl"
                           : is_text  ? "data.validation above 0"
                                      : "data.validation_tokens"));
    };
    asked("train.eval_every", recipe_.train.eval_every);
    asked("train.eval_batches", recipe_.train.eval_batches);
    asked("train.patience", recipe_.train.patience);
    asked("train.keep_best", recipe_.train.keep_best);
  }

  // What keeps checkpoints besides the newest has nothing to do where every one is kept.
  void report_kept() {
    if (recipe_.train.keep_checkpoints > 0) return;
    for (const auto& [key, count] : {std::pair{"train.keep_best", recipe_.train.keep_best},
                                     std::pair{"train.keep_every", recipe_.train.keep_every}})
      if (count > 0)
        report(key, "train.keep_checkpoints",
               "does nothing where train.keep_checkpoints is 0, which keeps every checkpoint");
  }

  // Only who learns to write shows what it writes.
  void report_samples() {
    const TaskKind* kind = find_task(recipe_.task.kind);
    const models::ModelFamily* family = models::find_family(recipe_.model.family);
    if (!kind && family) kind = &usual_task(*family);
    if (kind && !kind->writes_text)
      for (const auto& [key, count] :
           {std::pair{"train.sample_every", recipe_.train.sample_every},
            std::pair{"train.sample_tokens", recipe_.train.sample_tokens}})
        if (count > 0 || all_)
          report(
              key, recipe_.task.kind.empty() ? "model.family" : "task.kind",
              fmt::format("is of models that write text; what learns {} writes none", kind->name));
    if (recipe_.train.sample_tokens == 0)
      report("train.sample_every", "train.sample_tokens",
             "does nothing where train.sample_tokens is 0");
  }

  // Who reads of a run need not see what it left empty, or a type that it has no use for.
  void report_empty() {
    if (!all_) return;
    const DataSection& d = recipe_.data;
    const char* named = is_arrays() ? "data.csv" : is_jsonl() ? "data.jsonl" : "data.text";
    if (!d.images.empty())
      report("data.csv", "data.images", "is not read where data.images is given");
    else
      report("data.images", named, "names no images");
    if (!is_arrays()) report("data.csv", named, "names no table");
    if (d.labelled.empty()) report("data.labelled", named, "names no texts with labels");
    if (d.outputs == 0) report("data.outputs", "data.csv", "is 0: lines end in a label");
    const PrecisionRecipe& p = recipe_.precision;
    if (p.level == Level::O0 && !p.level_is_auto)
      report("precision.type", "precision.level", "does nothing at O0, which is f32");
  }

  // Options of a momentum where there is none.
  void report_idle_options() {
    const OptimizerSection& o = recipe_.optimizer;
    const optim::OptimizerKind* kind = optim::find_optimizer_kind(o.kind);
    if (!kind || !kind->find("dampening")) return;
    if (o.options.find("momentum")->second == SettingValue(0.0))
      report("optimizer.dampening", "optimizer.momentum",
             "does nothing where optimizer.momentum is 0");
  }

  std::string origin(std::string_view key) const {
    const auto it = recipe_.origin.find(std::string(key));
    return it == recipe_.origin.end() ? "" : it->second;
  }
  void report(std::string_view key, std::string_view selector, const std::string& why) {
    const std::string from = origin(key);
    const bool is_given = !from.empty();
    const bool is_replaced = from != kSetOrigin && origin(selector) == kSetOrigin;
    if (!all_ && (!is_given || is_replaced)) return;
    const json value = value_of(recipe_, key);
    if (!all_ && is_off(value) && value == value_of(Recipe(), key)) return;
    // One reason is enough.
    if (std::any_of(found_.begin(), found_.end(), [&](const auto& u) { return u.key == key; }))
      return;
    found_.push_back({std::string(key), why});
  }

  const Recipe& recipe_;
  bool all_;
  std::vector<UnusedKey> found_;
};

// What decides when a run stops to look, what it keeps and in which order it reads: nothing that a
// step is compiled from.
constexpr std::string_view kOfTheRun[] = {"data.validation_jsonl",
                                          "data.validation_tokens",
                                          "data.validation_images",
                                          "data.validation_labels",
                                          "data.validation_labelled",
                                          "data.sampling",
                                          "train.eval_every",
                                          "train.eval_batches",
                                          "train.patience",
                                          "train.checkpoint_every",
                                          "train.checkpoint_minutes",
                                          "train.keep_checkpoints",
                                          "train.keep_best",
                                          "train.keep_every",
                                          "train.sample_every",
                                          "train.sample_tokens",
                                          "train.on_nonfinite",
                                          "train.on_spike",
                                          "train.spike_factor",
                                          "train.spike_window",
                                          "train.rollbacks",
                                          "train.checkpoint_copy",
                                          "probe.at",
                                          "profile.steps",
                                          "profile.start"};

}  // namespace

bool is_read_by_a_step(std::string_view key) {
  // Of [monitor] a program has what it looks at, and none of the rules.
  if (key.starts_with("monitor.") && key.find('.', 8) != std::string_view::npos) return false;
  return std::find(std::begin(kOfTheRun), std::end(kOfTheRun), key) == std::end(kOfTheRun);
}

bool is_read_for_tokens(std::string_view key) {
  // The tokenizer may lie beside the weights that a run begins from.
  if (key == "model.init") return true;
  return key.starts_with("data.") && key != "data.sampling" && key != "data.length";
}

std::vector<UnusedKey> unused_keys(const Recipe& recipe, bool all) {
  return Search(recipe, all).unused();
}

}  // namespace aloft
