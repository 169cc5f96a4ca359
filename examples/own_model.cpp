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

struct Sizes {
  std::int64_t width = 64, features = 2, classes = 2;
  static auto fields() {
    return FieldList{
        models::setting("width", &Sizes::width, {1, 4096}, "features between the layers"),
        models::setting("features", &Sizes::features, {1, 64}, "an example", {.is_of_data = true}),
        models::setting("classes", &Sizes::classes, {1, 64}, "logits", {.is_of_data = true})};
  }
};

struct Wave : models::Classifier {
  explicit Wave(const Sizes& c) : config(c) {}
  std::int64_t classes() const override { return config.classes; }
  Tensor operator()(Operand x) const override {  // [B, features] -> logits [B, classes]
    return call(x, [&](Tensor t) { return down(sin(up(t))); });
  }
  Sizes config;
  nn::Linear up{*this, "up", config.features, config.width};
  nn::Linear down{*this, "down", config.width, config.classes};
};

struct StopAt : Listener {
  explicit StopAt(std::int64_t step) : last(step) {}
  void step_done(const StepDone& e, Control& run) override {
    if (e.step == last) run.stop("as far as this part goes");
  }
  std::int64_t last;
};

constexpr const char* kRecipe = R"(model.family = "wave"
optimizer = { kind = "lion", lr = 3e-3 }
precision.level = "O2:bf16"
train = { batch = 32, steps = 200, eval_every = 50, checkpoint_every = 50 })";

// Up to `last_step`, from the start or from where the run in `out` stands; its weights then.
std::string train(const Path& csv, const Path& out, std::int64_t last_step) {
  StopAt stop(last_step);
  TrainOptions options{.out = out, .resume = std::filesystem::exists(out)};
  options.report = write_report;
  options.listeners = {&stop};
  const Recipe recipe = parse_recipe(kRecipe, "own_model.cpp", {{"data.csv", csv.string()}});
  return read_file(run_training(recipe, options).checkpoint / "model.safetensors");
}

int main() {
  models::add_family(models::family_of<Sizes, Wave>("wave", "classifier: a sine between two"));
  const Path root = std::filesystem::temp_directory_path() / std::to_string(getpid());
  std::filesystem::create_directories(root);
  std::ofstream csv(root / "rings.csv");  // x, y, and in which ring around 0 they lie
  for (double i = 0; i < 3; i += 0.0025)
    csv << std::sin(999 * i) * i << "," << std::cos(999 * i) * i << "," << (i > 1.5) << std::endl;
  const std::string whole = train(root / "rings.csv", root / "whole", 200);
  train(root / "rings.csv", root / "cut", 70);
  const bool is_good = train(root / "rings.csv", root / "cut", 200) == whole &&
                       std::filesystem::exists(root / "cut" / "report.html");
  std::filesystem::remove_all(root);
  std::puts(is_good ? "resumed: the same bits" : "resumed: other bits");
  return is_good ? 0 : 1;
}
