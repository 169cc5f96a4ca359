#include "tasks/multi_label.h"

#include <fmt/format.h>

#include "models/logits.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/losses.h"
#include "ops/reduce.h"
#include "tasks/features.h"

namespace aloft {

Tensor MultiLabel::loss(const std::vector<Tensor>& columns) const {
  ModuleScope scope("", model_->policy());
  return bce_with_logits(models::outputs_of(*model_, inputs_of(columns)), columns[1]);
}

Task::Named MultiLabel::evaluate(const std::vector<Tensor>& columns) const {
  Tensor logits, loss;
  {
    ModuleScope scope("", model_->policy());
    logits = models::outputs_of(*model_, inputs_of(columns));
    loss = bce_with_logits(logits, columns[1]);
  }
  // Counting is no part of the model: in its low precision it would be rounded.
  const Tensor hits = equal(greater(logits, 0.0), greater(columns[1], 0.5));
  return {{"loss", loss}, {"accuracy", mean(cast(hits, DType::F32))}};
}

std::vector<Measure> MultiLabel::measures(double, const std::vector<double>& means,
                                          std::optional<double>) const {
  if (means.empty()) return {};
  return {{"accuracy", means[0], fmt::format("accuracy {:.2f} % of labels", 100 * means[0])}};
}

TaskKind multi_label_task() {
  TaskKind kind;
  kind.name = "multi-label";
  kind.meaning = "which of several labels hold for an example";
  kind.takes = takes_features;
  kind.columns = [](const models::ModelSpec& spec, const SettingValues& facts) {
    std::vector<Column> all{features_column(spec, facts), targets_column(spec, facts)};
    all[1].is_share = true;
    return all;
  };
  kind.make = [](const models::ModelSpec& spec) -> std::unique_ptr<Task> {
    return std::make_unique<MultiLabel>(models::make_classifier(spec));
  };
  return kind;
}

}  // namespace aloft
