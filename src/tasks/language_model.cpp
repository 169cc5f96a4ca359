#include "tasks/language_model.h"

#include "frontend/call_taps.h"
#include "frontend/tracing.h"
#include "models/logits.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "tasks/loss_text.h"

namespace aloft {

namespace {

// A model computes its loss itself, and nobody sees its logits there: they are traced beside it,
// which computes nothing.
void check_logits(const models::CausalLm& model, const TensorType& tokens) {
  StateTable variables;
  const CallTaps nobody({}, {});  // these calls are none of the step's
  trace(
      "logits", {{"tokens", tokens}},
      [&](const std::vector<Tensor>& in) {
        models::logits_of(model, in[0]);
        return Task::Named{};
      },
      variables);
}

}  // namespace

Tensor LanguageModel::mean_loss(const std::vector<Tensor>& columns) const {
  ModuleScope scope("", model_->policy());
  if (!has_checked_) check_logits(*model_, columns[0].type());
  has_checked_ = true;
  return model_->loss(columns[0], columns[1]);
}

// The weight is no part of the model: in its low precision it would be rounded.
Tensor LanguageModel::loss(const std::vector<Tensor>& columns) const {
  const Tensor mean = mean_loss(columns);
  return columns.size() > 2 ? mean * max(columns[2]) : mean;
}

std::vector<Measure> LanguageModel::measures(double loss, const std::vector<double>&,
                                             std::optional<double> bytes_a_target) const {
  return measures_of_text(loss, bytes_a_target);
}

TaskKind language_model_task() {
  TaskKind kind;
  kind.name = "language-model";
  kind.meaning = "the next token, of each";
  kind.unit = "tokens", kind.short_unit = "tok", kind.rate = "tokens_per_s";
  kind.writes_text = true;
  kind.is_usual = true;
  kind.takes = [](const models::ModelFamily& f) { return static_cast<bool>(f.make_causal_lm); };
  kind.columns = [](const models::ModelSpec& spec, const SettingValues& of_data) {
    const auto length = of_data.find("length");
    const std::vector<std::int64_t> shape{
        length == of_data.end() ? spec.whole("context") : std::get<std::int64_t>(length->second)};
    const std::int64_t vocab = spec.whole("vocab");
    std::vector<Column> columns{{"tokens", DType::I32, shape, vocab},
                                {"targets", DType::I32, shape, vocab}};
    if (of_data.contains("weights")) columns.push_back({"weights", DType::F32, {}, 0});
    return columns;
  };
  kind.make = [](const models::ModelSpec& spec) -> std::unique_ptr<Task> {
    return std::make_unique<LanguageModel>(models::make_causal_lm(spec));
  };
  return kind;
}

}  // namespace aloft
