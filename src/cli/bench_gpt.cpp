// A GPT's training step to be timed: a recipe's, or the defaults' with a model by size.
#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/bench_step.h"
#include "cli/device_option.h"
#include "cli/product_rates.h"
#include "cli/recipe_subject.h"
#include "recipe/memory_need.h"
#include "recipe/recipe.h"
#include "recipe/recipe_unused.h"
#include "scalar/philox.h"
#include "train/session.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

constexpr std::int64_t kVocab = 4096;  // of a model by its size whose vocabulary nothing says

bool is_recipe(const std::string& model) { return model.size() > 5 && model.ends_with(".toml"); }

// What is neither a recipe nor a model that has a name here: a slip in either, or a run.
void need_model_name(const std::string& given) {
  std::vector<std::string> names = models::names_of_sizes(*models::find_family("gpt2"));
  if (std::find(names.begin(), names.end(), given) != names.end()) return;
  for (const char* other : {"llama", "lenet", "resnet18"}) names.emplace_back(other);
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

// The recipe that is timed: the file's own, or the defaults with the model's size.
Recipe recipe_of(const BenchOptions& o) {
  std::vector<Override> set;
  const auto put = [&](const char* key, std::int64_t v) {
    if (v > 0) set.push_back({key, std::to_string(v)});
  };
  put("model.layers", o.layers);
  put("model.heads", o.heads);
  put("model.dim", o.dim);
  put("model.vocab", o.vocab);
  put("model.context", o.seq);
  put("train.batch", o.batch);
  if (o.threads >= 0) set.push_back({"train.threads", std::to_string(o.threads)});
  if (!o.precision.empty()) set.push_back({"precision", "\"" + o.precision + "\""});
  for (const std::string& text : o.set) set.push_back(parse_override(text));
  if (!is_recipe(o.model)) {
    need_model_name(o.model);
    for (const Override& s : set)
      if (s.key.starts_with("data") || s.key == "train.epochs") refuse_option(o, "--set " + s.key);
    set.push_back({"model.size", "\"" + o.model + "\""});
  }
  Recipe recipe = is_recipe(o.model) ? load_recipe(o.model, set) : parse_recipe("", "bench", set);
  use_device_of(recipe);
  refuse_unread(recipe, is_read_by_a_step, "a step is compiled");
  settle_length_without_training(recipe);
  need_compiled(recipe);  // it is the Plan that is timed
  return recipe;
}

// Random tokens; the same for every step.
struct RandomBatch {
  std::vector<std::int32_t> inputs, targets;
  RandomBatch(std::int64_t count, std::int64_t vocab) {
    for (std::int64_t i = 0; i < 2 * count; ++i)
      (i % 2 ? targets : inputs)
          .push_back(static_cast<std::int32_t>(scalar::random_bits({1, 0, 0, 0}, i) %
                                               static_cast<std::uint64_t>(vocab)));
  }
};

class GptBench : public BenchSubject {
 public:
  explicit GptBench(const BenchOptions& o)
      : model_(o.model),
        session_(open(recipe_of(o), is_recipe(o.model))),
        runner_(make_runner(session_)),
        data_(rows() * context(), session_.model->vocab()) {
    batch_.inputs = data_.inputs;
    batch_.targets = data_.targets;
    batch_.rows = rows();
  }
  Programs& programs() override { return *runner_->programs(); }
  void start() override {
    need_memory_for(programs().plan());
    make_values(session_);
    runner_->start();
  }
  double step() override {
    for (int m = 1; m < micro_batches(); ++m) runner_->accumulate(batch_);
    return runner_->step(batch_).loss;
  }
  int micro_batches() const override { return static_cast<int>(session_.recipe.train.accumulate); }
  json description() const override {
    json j = {{"model", model_},
              {"precision", print_precision(session_.recipe.precision)},
              {"batch", rows()},
              {"seq", context()},
              {"layers", session_.spec.whole("layers")},
              {"heads", session_.spec.whole("heads")},
              {"dim", session_.spec.whole("dim")},
              {"vocab", session_.model->vocab()}};
    if (micro_batches() > 1) j["accumulate"] = micro_batches();
    return j;
  }
  std::string unit() const override { return "tokens"; }
  std::int64_t units_a_step() const override { return micro_batches() * rows() * context(); }

 private:
  static Session open(const Recipe& recipe, bool is_recipe) {
    SettingValues facts;
    if (is_recipe)
      facts = facts_without_training(recipe);
    else if (recipe.model.whole("vocab") == 0)
      facts = {{"vocab", kVocab}};
    std::function<MeasuredRates()> measure;
    if (!recipe.precision.is_resolved()) measure = [] { return shown_product_rates(); };
    return open_session(recipe, facts, measure);
  }
  std::int64_t rows() const { return session_.recipe.train.batch; }
  std::int64_t context() const { return session_.model->context(); }

  std::string model_;
  Session session_;
  std::unique_ptr<Runner> runner_;
  RandomBatch data_;
  Batch batch_;
};

}  // namespace

std::unique_ptr<BenchSubject> open_gpt_bench(const BenchOptions& options) {
  return std::make_unique<GptBench>(options);
}

}  // namespace aloft::cli
