// `adaptive` precision: what is measured is what the types do, the choice follows from it, and a
// run that took one keeps it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "data/example_source.h"
#include "e2e/refusal.h"
#include "e2e/small_run.h"
#include "e2e/uneven_data.h"
#include "frontend/programs.h"
#include "recipe/recipe.h"
#include "run/recorded_choices.h"
#include "scalar/float_formats.h"
#include "temporary_folder.h"
#include "train/session.h"
#include "train/trainer.h"

namespace aloft::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Adaptive : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    set_log_level(LogLevel::Error);
    folder_.put(folder_ / "houses.csv", table_of_houses());
    folder_.put(folder_ / "images.csv", images_on_a_pedestal());
    folder_.put(folder_ / "table.toml", R"([model]
family = "mlp"
hidden = [64, 64]
[task]
kind = "regression"
[data]
csv = "houses.csv"
outputs = 1
validation = 0.25
[optimizer]
lr = 1e-3
[train]
batch = 32
steps = 12
eval_every = 0
checkpoint_every = 4
keep_checkpoints = 0
threads = 2
)");
    folder_.put(folder_ / "images.toml", kImagesRecipe);
  }

  Recipe recipe(const char* file, const std::vector<std::string>& set = {}) const {
    return load_recipe(folder_ / file, e2e::overrides_of(set));
  }
  TrainResult train(const std::string& out, const char* file, const std::vector<std::string>& set,
                    bool resume = false) {
    aloft::TrainOptions options;
    options.out = folder_ / out;
    options.resume = resume;
    options.quiet = true;
    options.measure = [this] {
      ++measured_;
      return MeasuredRates{100, 300, "pretended", 100};
    };
    return run_training(recipe(file, set), options);
  }
  json record(const std::string& out) const {
    return json::parse(read_file(folder_ / out / "run.json", 1 << 26));
  }
  std::string state(const std::string& out, const char* step) const {
    std::string all;
    for (const char* file : {"model.safetensors", "state.safetensors"})
      all += read_file(folder_ / out / "checkpoints" / step / file, 1 << 26);
    return all;
  }
  std::string chosen(const std::string& out) const {
    return record(out)["choices"]["precision"]["value"];
  }

  TemporaryFolder folder_;
  int measured_ = 0;
};

// Batches of the same rows.
class Rows : public ExampleSource {
 public:
  Rows(std::vector<float> x, std::vector<float> y, std::int64_t rows)
      : x_(std::move(x)), y_(std::move(y)) {
    batch_.columns = {std::as_bytes(std::span(x_)), std::as_bytes(std::span(y_))};
    batch_.rows = rows;
  }
  const ExampleBatch* next() override { return &batch_; }
  std::uint64_t position() const override { return 0; }
  std::uint64_t samples_per_epoch() const override { return 1; }

 private:
  std::vector<float> x_, y_;
  ExampleBatch batch_;
};

double norm_without_mean(const std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (double v : values) mean += v / static_cast<double>(values.size());
  for (double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares);
}

// One layer, y = w x + b, whose error can be had by hand: x and w rounded, the sum in f32, y
// rounded.
TEST_F(Adaptive, MeasuresWhatRoundingDoes) {
  constexpr int kRows = 32, kWidth = 8;
  const Recipe r = recipe("table.toml", {"model.hidden=[]"});
  std::vector<float> x, y;
  for (int i = 0; i < kRows * kWidth; ++i) x.push_back(static_cast<float>(100 + drawn(i)));
  for (int i = 0; i < kRows; ++i) y.push_back(static_cast<float>(drawn(1000 + i)));
  const SettingValues facts = {{"features", std::int64_t{kWidth}},
                               {"classes", std::int64_t{1}},
                               {"outputs", std::int64_t{1}}};
  Session s = open_session(r, facts, nullptr);
  make_values(s);
  const auto weight = s.model().parameters()[0]->buffer->read<float>();
  const auto bias = s.model().parameters()[1]->buffer->read<float>();
  const auto output = [&](auto round, int row) {
    double sum = static_cast<double>(round(bias[0]));
    for (int k = 0; k < kWidth; ++k)
      sum +=
          static_cast<double>(round(x[row * kWidth + k])) * static_cast<double>(round(weight[k]));
    return sum;
  };
  const auto error = [&](auto round) {
    std::vector<double> exact, off;
    for (int row = 0; row < kRows; ++row) {
      exact.push_back(output([](float v) { return v; }, row));
      off.push_back(static_cast<double>(round(static_cast<float>(output(round, row)))) -
                    exact.back());
    }
    return norm_without_mean(off) / norm_without_mean(exact);
  };
  const DType low[] = {DType::BF16, DType::F16};
  const auto batches = [&](const std::vector<Column>&) {
    return std::make_unique<Rows>(x, y, kRows);
  };
  const auto found = measure_layer_errors(r, s.spec, s.columns, batches, low);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].layer, "0");
  const double bf16 = error([](float v) { return scalar::f32_of(scalar::bf16_of(v)); });
  const double f16 = error([](float v) { return scalar::f32_of(scalar::f16_of(v)); });
  EXPECT_NEAR(found[0].by_type.at(DType::BF16).forward, bf16, 0.02 * bf16);
  EXPECT_NEAR(found[0].by_type.at(DType::F16).forward, f16, 0.02 * f16);
  // A hundred and a part of one: what bf16 leaves of the part is little.
  EXPECT_GT(bf16, 0.1);
  EXPECT_LT(f16, bf16 / 4);
  EXPECT_LT(found[0].by_type.at(DType::BF16).backward, 0.01);
}

TEST_F(Adaptive, NoTypeFitsAllLayersAndModelsDiffer) {
  train("table", "table.toml", {"precision.level=adaptive"});
  train("images", "images.toml", {"precision.level=adaptive"});
  for (const char* out : {"table", "images"}) {
    const json figures = record(out)["choices"]["precision"]["figures"];
    ASSERT_GT(figures.size(), 3u) << out;
    double worst[2] = {0, 0};
    for (const auto& [layer, errors] : figures.items())
      for (const auto& [name, error] : errors.items()) {
        double& most = worst[name.starts_with("fp16")];
        most = std::max(most, error.is_number() ? error.get<double>() : INFINITY);
      }
    // bf16 everywhere is beyond the budget; fp16 is too, or multiplies no faster than f32.
    EXPECT_GT(worst[0], kErrorBudget) << out;
    EXPECT_TRUE(chosen(out).starts_with("O2:bf16 fp32_layers=")) << chosen(out);
  }
  EXPECT_EQ(record("table")["choices"]["precision"]["figures"]["0"]["fp16 forward"], "inf");
  EXPECT_NE(chosen("table"), chosen("images"));
  EXPECT_NE(chosen("images").find("fp32_layers=bn1,conv1"), std::string::npos) << chosen("images");
}

// Without masters and a loss scale f16 loses updates, the choice does not.
TEST_F(Adaptive, EndsWhereF32EndsAndPlainF16DoesNot) {
  folder_.put(folder_ / "text.txt", small_text());
  folder_.put(folder_ / "text.toml", kSmallRecipe);
  const auto loss_of = [&](const char* level) {
    const std::vector<std::string> set = {std::string("precision.level=") + level,
                                          "model.dropout=0",
                                          "optimizer.lr=1e-3",
                                          "train.batch=8",
                                          "train.steps=600",
                                          "train.eval_every=600",
                                          "train.checkpoint_every=0",
                                          "data.cache=\"" + (folder_ / "cache").string() + "\""};
    return train(level, "text.toml", set).val_loss.value();
  };
  const double wide = loss_of("O0");
  EXPECT_NEAR(loss_of("adaptive"), wide, 0.002 * wide);
  EXPECT_GT(std::abs(loss_of("O3:fp16") - wide), 0.01 * wide);
  EXPECT_EQ(chosen("adaptive"), "O2:bf16");
}

TEST_F(Adaptive, IsChosenOnceAndGoesOnToTheBit) {
  const std::vector<std::string> set = {"precision.level=adaptive"};
  train("straight", "table.toml", set);
  EXPECT_EQ(measured_, 1);
  const json begun = record("straight");
  for (const char* out : {"goes_on", "record_lost"}) {
    fs::copy(folder_ / "straight", folder_ / out, fs::copy_options::recursive);
    for (const char* step : {"step-000008", "step-000012"})
      fs::remove_all(folder_ / out / "checkpoints" / step);
    if (out == std::string("record_lost")) fs::remove(folder_ / out / "run.json");
    EXPECT_EQ(train(out, "table.toml", set, true).steps, 8) << out;
    EXPECT_TRUE(state("straight", "step-000012") == state(out, "step-000012")) << out;
    EXPECT_EQ(record(out)["choices"], begun["choices"]) << out;
    EXPECT_EQ(record(out)["signature"], begun["signature"]) << out;
  }
  EXPECT_EQ(measured_, 1);
}

// The record says what was asked for, and a resume with another budget that the choice stays.
TEST_F(Adaptive, AnotherBudgetOnAResumeIsSaid) {
  const std::string asked = "adaptive error_budget=0.01";
  train("run", "table.toml", {"precision=\"" + asked + "\"", "train.steps=4"});
  const json choices = record("run")["choices"], types = record("run")["layer_types"];
  EXPECT_EQ(choices["precision"]["asked"], asked);
  ASSERT_EQ(types.size(), choices["precision"]["figures"].size());
  for (const auto& [layer, type] : types.items())
    EXPECT_TRUE(type == "bf16" || type == "fp16" || type == "fp32") << layer << " " << type;
  const auto said_with = [&](const char* budget, int steps) {
    ::testing::internal::CaptureStderr();
    train("run", "table.toml",
          {std::string("precision=\"adaptive error_budget=") + budget + "\"",
           "train.steps=" + std::to_string(steps)},
          true);
    EXPECT_EQ(record("run")["choices"], choices);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said_with("1%", 8).find("is kept"), std::string::npos);
  set_log_level(LogLevel::Warning);
  const std::string said = said_with("5%", 12);
  EXPECT_NE(said.find("adaptive error_budget=0.05: what was chosen for " + asked + " is kept"),
            std::string::npos)
      << said;
  EXPECT_EQ(measured_, 1);
}

TEST_F(Adaptive, ThreadsAndModesHaveTheSameBits) {
  train("two", "table.toml", {"precision.level=adaptive"});
  train("one", "table.toml", {"precision.level=adaptive", "train.threads=1"});
  train("eager", "table.toml", {"precision.level=adaptive", "train.mode=eager"});
  for (const char* out : {"one", "eager"}) {
    EXPECT_EQ(record(out)["choices"], record("two")["choices"]) << out;
    EXPECT_TRUE(state("two", "step-000012") == state(out, "step-000012")) << out;
  }
}

// Every layer that is measured can be named: of a tied model the head, which is no module, too.
TEST_F(Adaptive, TakesWhatItChoosesOfATiedModel) {
  folder_.put(folder_ / "text.txt", small_text());
  folder_.put(folder_ / "text.toml", kSmallRecipe);
  const std::vector<std::string> small = {"train.steps=2", "train.checkpoint_every=0",
                                          "data.cache=\"" + (folder_ / "cache").string() + "\""};
  for (const char* budget : {"0.0025", "0.003", "0.0035"}) {
    std::vector<std::string> set = small;
    set.push_back(std::string("precision=\"adaptive error_budget=") + budget + "\"");
    train(budget, "text.toml", set);
    EXPECT_TRUE(chosen(budget).starts_with("O")) << chosen(budget);
  }
  EXPECT_NE(chosen("0.003"), "O2:bf16");
  std::vector<std::string> set = small;
  set.push_back("precision=\"O2:bf16 fp32_layers=head bf16_layers=loss\"");
  train("named", "text.toml", set);
  bool is_seen = false;
  const json decisions = record("named")["precision_decisions"];
  for (const json& d : decisions)
    if (d["path"] == "head" && d["op"] == "linear") is_seen = d["compute"] == "f32";
  EXPECT_TRUE(is_seen);
}

// A scale that does not move overflows in training where it overflows when it is measured.
TEST_F(Adaptive, AFixedScaleIsNotHalved) {
  train("fixed", "table.toml",
        {"precision=\"adaptive:fp16 loss_scale=1e9\"", "data.scale=1e-4", "train.steps=1"});
  const json figures = record("fixed")["choices"]["precision"]["figures"];
  ASSERT_EQ(figures.size(), 4u);
  for (const auto& [layer, errors] : figures.items()) {
    if (layer == ".") continue;
    EXPECT_EQ(errors["fp16 backward"], "inf") << layer;
  }
  EXPECT_EQ(chosen("fixed").find("f16"), std::string::npos) << chosen("fixed");
}

// A layer that nobody measured gets no type by accident, and a choice of one that is gone is not
// taken for the recipe's.
TEST_F(Adaptive, ChoicesOfOtherLayersAreRefused) {
  train("run", "table.toml", {"precision.level=adaptive", "train.steps=4"});
  const auto taken = [&](const char* hidden) {
    aloft::TrainOptions options;
    options.out = folder_ / "other";
    options.quiet = true;
    options.choices = choices_of_run(folder_ / "run");
    const std::string sizes = std::string("model.hidden=") + hidden;
    return what_of([&] {
      run_training(recipe("table.toml", {"precision.level=adaptive", "train.steps=4", sizes}),
                   options);
    });
  };
  const std::string more = taken("[64,64,64,64]"), fewer = taken("[64]");
  for (const char* part : {"E0829", "in this model, not measured: 3, 4", "--choices"})
    EXPECT_NE(more.find(part), std::string::npos) << more;
  for (const char* part : {"E0829", "measured, and not in this model: 2"})
    EXPECT_NE(fewer.find(part), std::string::npos) << fewer;
  EXPECT_EQ(taken("[32,32]"), "");  // the same layers, of other widths
  EXPECT_EQ(chosen("other"), chosen("run"));
}

// Every layer with parameters is measured, so that a run of the same model is never refused.
TEST_F(Adaptive, ChoicesOfTheSameLayersAreTaken) {
  folder_.put(folder_ / "text.txt", small_text());
  folder_.put(folder_ / "text.toml", kSmallRecipe);
  for (const char* file : {"table.toml", "images.toml", "text.toml"}) {
    const std::string out = std::string(file) + ".run";
    std::vector<std::string> set = {"precision.level=adaptive", "train.steps=4",
                                    "train.checkpoint_every=0"};
    if (file == std::string("text.toml"))
      set.push_back("data.cache=\"" + (folder_ / "cache").string() + "\"");
    train(out, file, set);
    aloft::TrainOptions options;
    options.out = folder_ / (out + ".again");
    options.quiet = true;
    options.choices = choices_of_run(folder_ / out);
    run_training(recipe(file, set), options);
    EXPECT_EQ(record(out + ".again")["choices"], record(out)["choices"]) << file;
  }
}

// A slip in the recipe's own lists is said before anything is measured, and is no measurement's.
TEST_F(Adaptive, OwnListsAreReadBeforeItMeasures) {
  const std::string why = what_of([&] {
    train("run", "table.toml", {"precision.level=adaptive", "precision.fp32_layers=[\"hed\"]"});
  });
  for (const char* part : {"E0809", "fp32_layers: \"hed\"", "precision.fp32_layers (--set)"})
    EXPECT_NE(why.find(part), std::string::npos) << why;
  EXPECT_EQ(why.find("measurement"), std::string::npos) << why;
  EXPECT_EQ(measured_, 0);
}

TEST_F(Adaptive, SaysThatItsChoiceDoesNotFitTheOptimizer) {
  const std::string why = what_of([&] {
    train("run", "images.toml",
          {"precision=\"adaptive error_budget=1e-9\"", "optimizer.master=split"});
  });
  for (const char* part : {"E0815", "`adaptive` chose O0", "fp32 (error budget", "error_budget,"})
    EXPECT_NE(why.find(part), std::string::npos) << why;
}

TEST_F(Adaptive, SaysWhatItMeasuresBeforeItDoes) {
  set_log_level(LogLevel::Info);
  ::testing::internal::CaptureStderr();
  train("run", "table.toml", {"precision.level=adaptive", "train.steps=4"});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("measures 4 layers, batches: 4 of 32 at most: as long as about 16 steps"),
            std::string::npos)
      << said;
}

// The model itself only passes on what its layers give: it has no products, they have.
TEST_F(Adaptive, KnowsWhichLayersHaveProducts) {
  const Recipe r = recipe("table.toml");
  const SettingValues facts = {
      {"features", std::int64_t{5}}, {"classes", std::int64_t{1}}, {"outputs", std::int64_t{1}}};
  const Session s = open_session(r, facts, nullptr);
  const std::vector<float> x(32 * 5, 1), y(32, 1);
  const DType low[] = {DType::BF16};
  const auto batches = [&](const std::vector<Column>&) { return std::make_unique<Rows>(x, y, 32); };
  const auto found = measure_layer_errors(r, s.spec, s.columns, batches, low);
  ASSERT_EQ(found.size(), 4u);
  for (const LayerErrors& e : found) EXPECT_EQ(e.has_products, !e.layer.empty()) << e.layer;
}

// What the recipe's optimizer cannot take is not chosen.
TEST_F(Adaptive, KeepsToBf16BesideWhatNeedsIt) {
  for (const char* option : {"optimizer.master=split", "optimizer.update=early"}) {
    std::vector<std::string> set = {"precision.level=adaptive", option, "optimizer.clip_norm=0",
                                    "train.steps=1"};
    train(option, "images.toml", set);
    EXPECT_EQ(chosen(option).find("fp16_layers"), std::string::npos) << chosen(option);
    const json figures = record(option)["choices"]["precision"]["figures"];
    ASSERT_GT(figures.size(), 4u) << option;
    for (const auto& [layer, errors] : figures.items())
      EXPECT_FALSE(errors.contains("fp16 forward")) << layer;
  }
}

// Layers that a recipe lists itself, without measuring.
TEST_F(Adaptive, ListedLayersHaveTheirTypes) {
  Recipe r = recipe("table.toml", {"precision=\"O2:bf16 fp32_layers=0 fp16_layers=2\""});
  Session s =
      open_session(r, {{"features", std::int64_t{3}}, {"classes", std::int64_t{1}}}, nullptr);
  const auto runner = make_runner(s);
  const std::map<std::string, DType> wanted = {
      {"0", DType::F32}, {"1", DType::BF16}, {"2", DType::F16}, {"", DType::BF16}};
  int products = 0;
  for (const DecisionRecord& d : runner->programs()->decisions("train")) {
    if (d.op != Name("linear") && d.op != Name("matmul")) continue;
    ++products;
    EXPECT_EQ(d.decision.compute, wanted.at(d.path.str())) << d.path.str();
    EXPECT_EQ(d.decision.reason == Reason::WideLayer, d.path == Name("0")) << d.path.str();
  }
  EXPECT_GT(products, 5);
  for (const VariablePtr& p : s.model().parameters()) {
    const DType type = wanted.at(std::string(layer_of_parameter(p->name.str())));
    EXPECT_EQ(p->type.dtype, type) << p->name.str();
    EXPECT_EQ(p->master != nullptr, type != DType::F32) << p->name.str();
  }
  EXPECT_EQ(scaler_rule(s.recipe.precision).kind, scalar::ScalerKind::Dynamic);
  r = recipe("table.toml", {"precision=\"O2:bf16 fp32_layers=7\""});
  EXPECT_THROW(
      open_session(r, {{"features", std::int64_t{3}}, {"classes", std::int64_t{1}}}, nullptr),
      UserError);
}

}  // namespace
}  // namespace aloft::e2e
