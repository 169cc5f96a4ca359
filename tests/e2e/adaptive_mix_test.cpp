// `adaptive` precision where the machine multiplies bf16 fastest, fp16 next and fp32 slowest: one
// model has all three types, and trains as in fp32.
#include <map>

#include "e2e/small_run.h"
#include "e2e/uneven_data.h"
#include "recipe/settle_precision.h"

namespace aloft::e2e {
namespace {

using nlohmann::json;

constexpr double kBudget = 0.0065;

class AdaptiveMix : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    set_log_level(LogLevel::Error);
    folder_.put(folder_ / "images.csv", images_on_a_pedestal());
    folder_.put(folder_ / "images.toml", kImagesRecipe);
  }
  // Steps of a rate at which fp16 without masters loses updates, and so few of them that the loss
  // is far from 0 at the end.
  TrainResult train(const std::string& out, const std::string& precision, bool resume = false) {
    aloft::TrainOptions options;
    options.out = folder_ / out;
    options.resume = resume;
    options.quiet = true;
    options.measure = [] {
      return MeasuredRates{
          .f32_gflops = 100, .bf16_gflops = 300, .source = "pretended", .f16_gflops = 200};
    };
    const Recipe recipe = load_recipe(
        folder_ / "images.toml",
        overrides_of({"precision=\"" + precision + "\"", "optimizer.lr=1e-5", "train.steps=200",
                      "train.eval_every=0", "train.checkpoint_every=100",
                      "train.keep_checkpoints=0", "train.threads=2"}));
    return run_training(recipe, options);
  }
  json record(const std::string& out) const {
    return json::parse(read_file(folder_ / out / "run.json", 1 << 26));
  }
  std::string state(const std::string& out) const {
    std::string all;
    for (const char* file : {"model.safetensors", "state.safetensors"})
      all += read_file(folder_ / out / "checkpoints" / "step-000200" / file, 1 << 26);
    return all;
  }
  // The mean of the last fifty.
  double loss(const std::string& out) const {
    std::istringstream text(read_file(folder_ / out / "metrics.jsonl", 1 << 26));
    double sum = 0;
    int count = 0;
    for (std::string line; std::getline(text, line);)
      if (const json step = json::parse(line); step.contains("loss") && step["step"] > 150)
        sum += step["loss"].get<double>(), ++count;
    EXPECT_EQ(count, 50) << out;
    return sum / count;
  }

  TemporaryFolder folder_;
};

bool is_within(const json& errors, const std::string& type) {
  for (const char* phase : {" forward", " backward"}) {
    const json& error = errors.at(type + phase);
    if (!error.is_number() || !(error.get<double>() <= kBudget)) return false;
  }
  return true;
}

TEST_F(AdaptiveMix, ThreeTypesInAModelThatTrainsAsInF32) {
  const std::string adaptive = "adaptive error_budget=" + std::to_string(kBudget);
  train("mixed", adaptive);
  const json run = record("mixed");
  const json &types = run["layer_types"], &figures = run["choices"]["precision"]["figures"];
  std::map<std::string, int> layers;
  ASSERT_EQ(types.size(), figures.size());
  for (const auto& [layer, type] : types.items()) {
    ++layers[type.get<std::string>()];
    const json& errors = figures.at(layer);
    EXPECT_EQ(type, is_within(errors, "bf16")   ? "bf16"
                    : is_within(errors, "fp16") ? "fp16"
                                                : "fp32")
        << layer << " " << errors.dump();
  }
  ASSERT_EQ(layers.size(), 3u) << run["choices"]["precision"]["value"] << figures.dump(1);

  // And the step computes each layer's products in its type.
  std::map<std::string, int> products;
  for (const json& d : run["precision_decisions"]) {
    if (d["op"] != "conv2d" && d["op"] != "linear") continue;
    const std::string type = types.at(d["path"].get<std::string>());
    EXPECT_EQ(d["compute"], type == "bf16" ? "bf16" : type == "fp16" ? "f16" : "f32") << d.dump();
    ++products[type];
  }
  EXPECT_GE(products.size(), 2u) << run["precision_decisions"].dump(1);

  train("wide", "O0");
  train("plain", "O3:fp16");
  const double wide = loss("wide");
  EXPECT_NEAR(loss("mixed"), wide, 0.002 * wide);
  EXPECT_GT(std::abs(loss("plain") - wide), 0.02 * wide);

  // From its middle on, to the bit, and without choosing anew.
  std::filesystem::copy(folder_ / "mixed", folder_ / "again",
                        std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(folder_ / "again" / "checkpoints" / "step-000200");
  EXPECT_EQ(train("again", adaptive, true).steps, 100);
  EXPECT_EQ(record("again")["choices"], run["choices"]);
  EXPECT_TRUE(state("again") == state("mixed"));
}

}  // namespace
}  // namespace aloft::e2e
