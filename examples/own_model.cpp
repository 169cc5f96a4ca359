// A model of one's own, trained as a recipe says: a config whose fields() are keys of [model], a
// class, and add_family(). A recipe does the rest as it does for the library's models: data,
// compiled steps, metrics, checkpoints, resume, the report. Here a run is stopped by a callback,
// resumed, and ends with the bits of one that ran through.
#include <aloft/aloft.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace aloft;

struct WaveConfig {
  std::int64_t width = 64, features = 2, classes = 2;
  static auto fields() {
    using C = WaveConfig;
    return std::tuple{
        models::setting("width", &C::width, {1, 4096}, "features between the layers"),
        models::setting("features", &C::features, {1, 64}, "of an example", {.is_of_data = true}),
        models::setting("classes", &C::classes, {1, 64}, "logits", {.is_of_data = true})};
  }
};

struct Wave : models::Classifier {
  explicit Wave(const WaveConfig& c)
      : config(c), up(*this, "up", c.features, c.width), down(*this, "down", c.width, c.classes) {}
  std::int64_t classes() const override { return config.classes; }
  // [B, features] -> logits [B, classes]
  Tensor operator()(Operand x) const override {
    return call(x, [&](Tensor t) { return down(sin(up(t))); });
  }
  WaveConfig config;
  nn::Linear up, down;
};

struct StopAt : Listener {
  explicit StopAt(std::int64_t step) : last(step) {}
  void step_done(const StepDone& e, Control& run) override {
    if (e.step == last) run.stop("as far as this part goes");
  }
  std::int64_t last;
};

constexpr const char* kRecipe = R"(model.family = "wave"
data.scale = 3
precision.level = "O2:bf16"
optimizer = { kind = "lion", lr = 3e-3 }
train = { batch = 32, steps = 200, eval_every = 50, checkpoint_every = 50 }
)";

TrainResult train(const Path& csv, const Path& out, std::int64_t last_step) {
  StopAt stop(last_step);
  const TrainOptions options{.out = out,
                             .resume = std::filesystem::exists(out),
                             .report = write_report,
                             .listeners = {&stop}};
  return run_training(parse_recipe(kRecipe, "own_model.cpp", {{"data.csv", csv.string()}}),
                      options);
}

int main() {
  models::add_family(models::family_of<WaveConfig, Wave>(
      "wave", "classifier: two layers and a sine", {{"features", 0l}, {"classes", 0l}}));
  const Path root = std::filesystem::temp_directory_path() / ("aloft-" + std::to_string(getpid()));
  std::filesystem::create_directories(root);
  std::ofstream csv(root / "rings.csv");  // x, y, and in which ring around 0 they lie
  for (double i = 0; i < 1200; ++i)
    csv << std::sin(2.4 * i) * i / 1200 << "," << std::cos(2.4 * i) * i / 1200 << "," << (i > 600)
        << "\n";
  csv.close();
  const TrainResult whole = train(root / "rings.csv", root / "whole", 200);
  train(root / "rings.csv", root / "cut", 70);
  const TrainResult resumed = train(root / "rings.csv", root / "cut", 200);
  const bool same = read_file(whole.checkpoint / "model.safetensors") ==
                    read_file(resumed.checkpoint / "model.safetensors");
  const bool is_reported = std::filesystem::exists(root / "cut" / "report.html");
  std::filesystem::remove_all(root);
  std::printf("validation loss %.4f; resumed: %s\n", *resumed.val_loss,
              same ? "the same bits" : "other bits");
  return same && is_reported && *resumed.val_loss < 0.3 ? 0 : 1;
}
