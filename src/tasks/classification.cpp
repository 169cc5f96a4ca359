#include "tasks/classification.h"

#include <fmt/format.h>

#include "models/logits.h"
#include "ops/arg_reduce.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "tasks/features.h"

namespace aloft {

Tensor Classification::loss(const std::vector<Tensor>& columns) const {
  ModuleScope scope("", model_->policy());
  return cross_entropy(models::outputs_of(*model_, inputs_of(columns)), columns.back());
}

Task::Named Classification::evaluate(const std::vector<Tensor>& columns) const {
  Tensor logits, loss;
  {
    ModuleScope scope("", model_->policy());
    logits = models::outputs_of(*model_, inputs_of(columns));
    loss = cross_entropy(logits, columns.back());
  }
  // Counting is no part of the model: in its low precision it would be rounded.
  const Tensor hits = equal(cast(argmax(logits, -1), DType::I32), columns.back());
  return {{"loss", loss}, {"accuracy", mean(cast(hits, DType::F32))}};
}

std::vector<Measure> Classification::measures(double, const std::vector<double>& means,
                                              std::optional<double>) const {
  if (means.empty()) return {};
  return {{"accuracy", means[0], fmt::format("accuracy {:.2f} %", 100 * means[0])}};
}

TaskKind classification_task() {
  TaskKind kind;
  kind.name = "classification";
  kind.meaning = "the class of an example";
  kind.is_usual = true;
  kind.takes = [](const models::ModelFamily& f) { return static_cast<bool>(f.make_classifier); };
  kind.columns = [](const models::ModelSpec& spec, const SettingValues& facts) {
    std::vector<Column> all = input_columns(spec, facts);
    all.push_back({"labels", DType::I32, {}, models::classes_of(spec)});
    return all;
  };
  kind.make = [](const models::ModelSpec& spec) -> std::unique_ptr<Task> {
    return std::make_unique<Classification>(models::make_classifier(spec));
  };
  return kind;
}

}  // namespace aloft
