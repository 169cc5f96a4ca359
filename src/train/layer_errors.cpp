#include "train/layer_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "frontend/amp.h"
#include "frontend/programs.h"
#include "frontend/random.h"
#include "frontend/value_and_grad.h"
#include "ops/binary.h"
#include "ops/norm.h"
#include "ops/op.h"
#include "passes/casting_emitter.h"
#include "passes/layer_error_names.h"
#include "recipe/memory_need.h"
#include "train/first_weights.h"
#include "train/runner.h"

namespace aloft {
namespace {

constexpr const char* kProgram = "measure";
constexpr const char* kScale = "scale";  // of the loss
constexpr int kStepsABatch = 4;          // in f32, of as much work as a look at a batch

// What training in a low type decides by, but for the lists of the recipe.
Policy low_policy(const PrecisionRecipe& asked, DType low) {
  PrecisionRecipe recipe = asked;
  recipe.level = Level::O2;
  recipe.low = low;
  recipe.layers_are_auto = recipe.low_is_auto = false;
  recipe.error_budget = kErrorBudget;
  recipe.fp32_layers.clear();
  recipe.bf16_layers.clear();
  recipe.fp16_layers.clear();
  return Policy(recipe);
}

class Measurement {
 public:
  Measurement(const Recipe& recipe, const models::ModelSpec& spec,
              const std::vector<Column>& columns, std::span<const DType> low,
              const MeasuredPart& part)
      : recipe_(recipe),
        columns_(columns),
        part_(part),
        programs_(static_cast<int>(recipe.train.threads), {.skip = {"fuse-head"}}),
        scaler_rule_(scaler_rule_of(recipe.precision)),
        scaler_(scalar::initial_state(scaler_rule_)) {
    manual_seed(recipe.train.seed);
    task_ = task_kind(recipe).make(spec);
    load_first_weights(recipe, task_->model());
    amp::prepare(task_->model(), PrecisionRecipe{});  // f32, and its ops are known
    std::vector<Policy> policies;
    for (const DType type : low) policies.push_back(low_policy(recipe.precision, type));
    programs_.measure_layers(std::move(policies));
    compile();
  }

  void look_at(const ExampleBatch& batch) {
    for (std::size_t i = 0; i < columns_.size(); ++i) inputs_[i].set(batch.columns[i]);
    for (;;) {
      in_scale_.set(std::span(&scaler_.scale, 1));
      programs_.run(program_, std::span(&batch.rows, 1));
      const bool moves = scaler_rule_.kind == scalar::ScalerKind::Dynamic;
      if (!moves || !overflows_by_scale() || scaler_.scale <= std::max(1.0f, scaler_rule_.min))
        break;
      scaler_ = scalar::next(scaler_, false, scaler_rule_);
    }
    for (Looked& one : looked_) {
      const double error = value(one);
      one.largest = std::max(one.largest, error);
    }
  }

  std::vector<LayerErrors> result() const {
    std::map<std::string, LayerErrors> by_layer;
    for (const Looked& one : looked_) {
      LayerErrors& layer = by_layer[one.name.layer];
      layer.layer = one.name.layer;
      layer.has_products = with_products_.contains(one.name.layer);
      LayerErrors::OfType& errors = layer.by_type[one.name.low];
      (one.name.phase == Phase::Forward ? errors.forward : errors.backward) = one.largest;
    }
    std::vector<LayerErrors> all;
    for (auto& [name, layer] : by_layer) all.push_back(std::move(layer));
    return all;
  }

 private:
  struct Looked {
    LayerErrorName name;
    OutputPort<float> at;
    double largest = 0;
  };

  // Auto: as of the low type that may be chosen.
  static scalar::ScalerRule scaler_rule_of(const PrecisionRecipe& asked) {
    if (asked.scale == ScalePolicy::None) return scalar::no_scaler();
    return asked.scale == ScalePolicy::Auto ? scalar::dynamic_scaler() : asked.scale_values;
  }

  std::int64_t rows() const { return std::min(recipe_.train.batch, part_.rows); }

  void compile() {
    std::vector<InputSpec> inputs = step_inputs(columns_, rows());
    inputs.push_back({kScale, {DType::F32, {}}});
    programs_.add(kProgram, inputs, [&](const std::vector<Tensor>& in) {
      const std::vector<Tensor> columns(in.begin(), in.end() - 1);
      const Tensor loss = task_->loss(columns) * in.back();
      Task::Named out = {{"loss", loss}};
      std::vector<VariablePtr> trained = task_->model().parameters();
      std::erase_if(trained, [](const VariablePtr& p) { return !p->requires_grad; });
      const std::vector<Tensor> gradients = gradients_of(loss, trained);
      // Read by something, or they would not be computed.
      for (std::size_t i = 0; i < gradients.size(); ++i)
        out.push_back({"gradient " + std::to_string(i), norm(gradients[i])});
      return out;
    });
    const auto& outputs = programs_.plan().find(kProgram)->outputs;
    std::set<std::string> layers;
    for (const NamedRef& o : outputs)
      if (const auto name = parse_layer_error(o.name)) layers.insert(name->layer);
    need_memory_for(programs_.plan(), kLessMemory);
    log_info(
        "adaptive precision: measures {} layers, batches: {} of {} at most: as long as about {} "
        "steps of that size in fp32, with {} of memory",
        layers.size(), part_.batches, rows(), kStepsABatch * part_.batches,
        human_bytes(programs_.plan().peak_bytes()));
    programs_.finish();
    program_ = programs_.find(kProgram);
    for (const DecisionRecord& d : programs_.decisions(kProgram))
      if (const OpDef* op = find_op(d.op); op && op->numeric == Numeric::Narrow)
        with_products_.insert(d.path.str());
    for (const Column& c : columns_)
      inputs_.push_back(programs_.input<std::byte>(kProgram, c.name));
    in_scale_ = programs_.input<float>(kProgram, kScale);
    for (const NamedRef& o : outputs)
      if (const auto name = parse_layer_error(o.name))
        looked_.push_back({*name, programs_.output<float>(kProgram, o.name)});
  }

  static double value(const Looked& one) {
    const double error = one.at.item();
    return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
  }

  // Whether the gradients of a layer overflow in fp16, and what they are gradients of does not.
  bool overflows_by_scale() const {
    std::set<std::string> overflown;
    for (const Looked& one : looked_)
      if (one.name.phase == Phase::Forward && !std::isfinite(value(one)))
        overflown.insert(one.name.layer);
    return std::ranges::any_of(looked_, [&](const Looked& one) {
      return one.name.low == DType::F16 && one.name.phase == Phase::Backward &&
             !std::isfinite(value(one)) && !overflown.contains(one.name.layer);
    });
  }

  const Recipe& recipe_;
  const std::vector<Column>& columns_;
  const MeasuredPart part_;
  Programs programs_;
  std::unique_ptr<Task> task_;
  scalar::ScalerRule scaler_rule_;
  scalar::ScalerState scaler_;  // the scale of the next look, which moves as a step's does
  int program_ = -1;
  std::vector<InputPort<std::byte>> inputs_;
  InputPort<float> in_scale_;
  std::vector<Looked> looked_;
  std::set<std::string> with_products_;  // layers
};

}  // namespace

std::vector<LayerErrors> measure_layer_errors(const Recipe& recipe, const models::ModelSpec& spec,
                                              const std::vector<Column>& columns,
                                              const Batches& batches, std::span<const DType> low,
                                              const MeasuredPart& part) {
  Measurement measurement(recipe, spec, columns, low, part);
  const std::unique_ptr<ExampleSource> source = batches(columns);
  for (int i = 0; i < part.batches; ++i) {
    const ExampleBatch* batch = source->next();
    if (!batch) break;
    measurement.look_at(*batch);
  }
  return measurement.result();
}

}  // namespace aloft
