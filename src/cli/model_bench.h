// What the benches of models without a recipe share: a model and its optimizer made for a
// precision, and the program "train", whose first output is "loss".
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_step.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/description.h"
#include "recipe/memory_need.h"
#include "recipe/recipe.h"

namespace aloft::cli {

template <class Model>
class ModelBench : public BenchSubject {
 public:
  Programs& programs() override { return programs_; }
  double step() override {
    programs_.run(program_, {});
    return loss_.item();
  }

 protected:
  template <class Config, class Method>
  ModelBench(const BenchOptions& o, const Config& config, const Method& method)
      : precision_(print_precision(parse_precision(given(o)))),
        described_(std::in_place),
        model_(config),
        optimizer_(amp::initialize(model_, method, given(o)).second),
        programs_(std::max(o.threads, 0), passes_of(o)),
        make_values_([this, config, method, precision = given(o)] {
          Model twin(config);
          const Optimizer its = amp::initialize(twin, method, precision).second;
          take_values(variables_of(model_, optimizer_), variables_of(twin, its));
        }) {
    described_.reset();
  }

  // `loss` of the inputs, traced and compiled; weights are made where the plan fits.
  template <class Loss>
  void compile(const std::vector<InputSpec>& inputs, const Loss& loss) {
    programs_.add("train", inputs, [&](const std::vector<Tensor>& in) {
      return results::flatten(minimize(loss(in), optimizer_));
    });
  }

  void start() override {
    need_memory_for(programs_.plan(), "a smaller --batch or model, or a lower --precision");
    make_values_();
    programs_.finish();
    program_ = programs_.find("train");
    loss_ = programs_.template output<float>("train", "loss");
  }

  std::string precision_;
  std::optional<OnlyDescribed> described_;  // while the model and its optimizer are made
  Model model_;
  Optimizer optimizer_;
  Programs programs_;

 private:
  static std::string given(const BenchOptions& o) {
    return o.precision.empty() ? "O0" : o.precision;
  }
  // Of a recipe's keys only the compiler's mean something here.
  static PipelineOptions passes_of(const BenchOptions& o) {
    std::vector<Override> set;
    for (const std::string& text : o.set) set.push_back(parse_override(text));
    const Recipe recipe = parse_recipe("", "bench", set);
    for (const auto& [key, origin] : recipe.origin)
      if (key != "train.skip_passes") refuse_option(o, "--set " + key);
    return {recipe.train.skip_passes};
  }

  std::function<void()> make_values_;
  int program_ = -1;
  OutputPort<float> loss_;
};

}  // namespace aloft::cli
