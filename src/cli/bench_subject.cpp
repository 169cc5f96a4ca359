// The training step that is timed: a recipe's, or that of a model by name with the defaults of a
// recipe.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/bench_dump.h"
#include "cli/bench_step.h"
#include "cli/made_up_batch.h"
#include "cli/product_rates.h"
#include "cli/recipe_subject.h"
#include "cli/shared_options.h"
#include "models/setting_json.h"
#include "recipe/memory_need.h"
#include "recipe/recipe.h"
#include "recipe/recipe_unused.h"
#include "sources/source_kind.h"
#include "train/session.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

// A file, or a folder of a model, which is one that says no more.
bool is_recipe(const std::string& model) {
  return (model.size() > 5 && model.ends_with(".toml")) || path_exists(Path(model) / "config.json");
}

// A family, by its name or by that of a size. One that is named alone is of its first size, if it
// has sizes: models of the recipes' defaults are for learning, not for timing.
struct Named {
  const models::ModelFamily* family = nullptr;
  std::string size;
};

Named find_model(const std::string& name) {
  if (const auto* family = models::family_of_size(name)) return {family, name};
  const auto* family = models::find_family(name);
  if (!family || family->sizes.empty()) return {family, ""};
  return {family, std::string(family->sizes.front().names.front())};
}

// What is neither a recipe nor a model that has a name here: a slip in either, or a run.
[[noreturn]] void no_such_model(const std::string& given) {
  const std::vector<std::string> names = models_by_name();
  UserError e("E0721", "there is no such recipe, and no model of that name");
  e.add_line("at", given);
  if (path_exists(Path(given) / "run.json"))
    e.add_line("saw", "a run directory; its recipe is in run.json");
  e.add_line("need", "a recipe (*.toml), or one of " + join(names, ", "));
  std::string near = nearest_name(given, names);
  if (near.empty()) near = nearest_recipe(given);
  if (!near.empty()) e.add_line("try", near);
  throw e;
}

// What the model by name has nothing of.
void refuse_what_is_not_its(const BenchOptions& o, const Named& named,
                            const std::vector<Override>& set) {
  for (const auto& [key, given] : o.sizes)
    if (!named.family->find(key)) refuse_option(o, option_of(key));
  for (const Override& s : set)
    if (s.key.starts_with("data") || s.key == "train.epochs" || s.key == "model.size" ||
        s.key == "model.family" || s.key == "model.init")
      refuse_option(o,
                    s.key == "model.init" && !o.recipe.init.empty() ? "--init" : "--set " + s.key);
}

// The recipe that is timed: the file's own, or the defaults with the model's size.
Recipe recipe_of(const BenchOptions& o) {
  std::vector<Override> set;
  // How long the sequences of a folder's model are, is the data's business: it says what it can.
  const bool of_folder = is_folder(o.recipe.path);
  for (const auto& [key, given] : o.sizes)
    set.push_back({of_folder && key == "context" ? "data.length" : "model." + key, given});
  if (o.batch > 0) set.push_back({"train.batch", std::to_string(o.batch)});
  if (o.threads) set.push_back({"train.threads", std::to_string(*o.threads)});
  if (!o.precision.empty()) set.push_back({"precision", "\"" + o.precision + "\""});
  for (Override& probe : overrides_of_probe(o.probe)) set.push_back(std::move(probe));
  const char* every = o.probe == "trends" ? "monitor.every" : "probe.every";
  if (o.probe != "none" && (o.probe_every > 1 || o.probe == "trends"))
    set.push_back({every, std::to_string(o.probe_every)});
  const std::vector<Override> keys = overrides_of(o.recipe);
  set.insert(set.end(), keys.begin(), keys.end());
  const std::string& model = o.recipe.path;
  if (!is_recipe(model)) {
    const Named named = find_model(model);
    if (!named.family) no_such_model(model);
    refuse_what_is_not_its(o, named, keys);
    set.push_back({"model.family", "\"" + std::string(named.family->name) + "\""});
    if (!named.size.empty()) set.push_back({"model.size", "\"" + named.size + "\""});
  }
  Recipe recipe = is_recipe(model) ? load_recipe(model, set) : parse_recipe("", "bench", set);
  use_device_of(recipe);
  refuse_unread(recipe, is_read_by_a_step, "a step is compiled");
  settle_length_without_training(recipe);
  need_compiled(recipe);  // it is the Plan that is timed
  return recipe;
}

class RecipeBench : public BenchSubject {
 public:
  explicit RecipeBench(const BenchOptions& o)
      : model_(o.recipe.path),
        session_(open(recipe_of(o), is_recipe(model_))),
        runner_(make_runner(session_)),
        less_memory_(
            is_recipe(model_)
                ? kLessMemory
                : "a smaller --batch, --context or --seq, or model, or a lower --precision") {}
  Programs& programs() override { return *runner_->programs(); }
  void start() override {
    need_memory_for(programs().plan(), less_memory_);
    make_values(session_);
    runner_->start();
    data_.emplace(session_.columns, rows());
    if (BenchDump::is_of(session_.recipe.probe)) dump_.emplace(session_, runner_);
  }
  double step() override {
    const int number = steps_made_++;
    for (int m = 1; m < micro_batches(); ++m) runner_->accumulate(data_->batch());
    const StepNumbers said = runner_->step(data_->batch(), number);
    if (dump_) dump_->write(number, said);
    return said.loss;
  }
  int steps_made() const override { return steps_made_; }
  std::string looked_at_by() const override {
    const Recipe& r = session_.recipe;
    const bool is_probed =
        std::ranges::any_of(std::array{"statistics", "tensor",
                                       "overflow"},  // of others a step that is timed has nothing
                            [&](const char* task) { return r.probe.task == task; });
    return is_probed ? r.probe.task : r.monitor.on ? "trends" : "";
  }
  void settle() override {
    if (dump_) dump_->settle();
  }
  Look look() const override {
    return look_at(session_.recipe.probe, steps_made_, session_.recipe.monitor);
  }
  std::int64_t steps_a_round() const override {
    const Recipe& r = session_.recipe;
    std::int64_t round = r.probe.task == "none" ? 1 : r.probe.every;
    if (r.probe.histograms) round = std::lcm(round, r.probe.histogram_every);
    return r.monitor.on ? std::lcm(round, r.monitor.every) : round;
  }
  std::string parameters_hash() const override {
    Hasher hash;
    for (const VariablePtr& v : session_.model().parameters())
      hash.update(v->buffer->read<std::byte>(0, v->type.max_bytes()));
    return hex16(hash.digest());
  }
  int micro_batches() const override { return static_cast<int>(session_.recipe.train.accumulate); }
  const PrecisionRecipe& precision() const override { return session_.recipe.precision; }
  const Choices& choices() const override { return session_.choices; }
  json description() const override {
    json j = {{"model", model_}, {"precision", print_precision(precision())}, {"batch", rows()}};
    for (const models::ModelSetting& s : session_.spec.family->settings) {
      const SettingValue& value = *session_.spec.find(s.key);
      j["settings"][std::string(s.key)] = std::holds_alternative<std::int64_t>(value)
                                              ? json(session_.spec.whole(s.key))
                                              : models::json_of(value);
    }
    if (const std::int64_t units = units_an_example(session_.recipe); units > 1)
      j[unit() + "_an_example"] = units;
    if (micro_batches() > 1) j["accumulate"] = micro_batches();
    return j;
  }
  std::string unit() const override { return std::string(task_kind(session_.recipe).unit); }
  std::int64_t units_a_step() const override {
    return micro_batches() * rows() * units_an_example(session_.recipe);
  }

 private:
  static Session open(const Recipe& recipe, bool is_recipe) {
    std::function<MeasuredRates()> measure;
    if (!recipe.precision.is_resolved()) measure = [] { return shown_product_rates(); };
    const models::ModelFamily& family = *model_spec(recipe).family;
    SettingValues facts = is_recipe ? source_of(recipe).facts(recipe) : family.made_up;
    if (!is_recipe)  // the model says itself what there is no data for
      for (const models::ModelSetting& s : family.settings)
        if (s.role.is_of_data && recipe.model.whole(s.key) > 0)
          facts[std::string(s.key)] = recipe.model.whole(s.key);
    if (is_recipe) return open_session(recipe, facts, measure, {}, batches_of(recipe));
    return open_session(recipe, facts, measure, {}, made_up_batches(recipe, kMadeUpPart.rows),
                        kMadeUpPart);
  }
  std::int64_t rows() const { return session_.recipe.train.batch; }

  std::string model_;
  Session session_;
  std::unique_ptr<Runner> runner_;
  std::optional<MadeUpBatch> data_;  // once there is room for it
  std::optional<BenchDump> dump_;    // of a probe that writes
  std::string less_memory_;
  int steps_made_ = 0;
};

}  // namespace

std::vector<std::string> models_by_name() {
  std::vector<std::string> names;
  for (const models::ModelFamily& f : models::families()) {
    const std::vector<std::string> sizes = models::names_of_sizes(f);
    names.insert(names.end(), sizes.begin(), sizes.end());
    if (std::find(names.begin(), names.end(), f.name) == names.end()) names.emplace_back(f.name);
  }
  return names;
}

std::string usual_model() { return models::names_of_sizes(models::usual_family()).front(); }

std::vector<std::string> sizes_by_option() {
  std::vector<std::string> keys;
  for (const models::ModelFamily& f : models::families())
    for (const models::ModelSetting& s : f.settings)
      if (std::holds_alternative<std::int64_t>(s.fallback) &&
          std::find(keys.begin(), keys.end(), s.key) == keys.end())
        keys.emplace_back(s.key);
  return keys;
}

std::string option_of(const std::string& size) {
  return (size == "context" ? "--seq,--" : "--") + size;
}

std::unique_ptr<BenchSubject> open_bench(const BenchOptions& options) {
  return std::make_unique<RecipeBench>(options);
}

}  // namespace aloft::cli
