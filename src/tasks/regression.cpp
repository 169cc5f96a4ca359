#include "tasks/regression.h"

#include <fmt/format.h>

#include <cmath>

#include "models/logits.h"
#include "ops/losses.h"
#include "tasks/features.h"

namespace aloft {

Tensor Regression::loss(const std::vector<Tensor>& columns) const {
  ModuleScope scope("", model_->policy());
  return mse_loss(models::outputs_of(*model_, inputs_of(columns)), columns[1]);
}

std::vector<Measure> Regression::measures(double loss, const std::vector<double>&,
                                          std::optional<double>) const {
  const double root = std::sqrt(loss);
  return {{"rmse", root, fmt::format("root mean square {:.4g}", root)}};
}

TaskKind regression_task() {
  TaskKind kind;
  kind.name = "regression";
  kind.meaning = "numbers, of an example";
  kind.takes = takes_features;
  kind.columns = [](const models::ModelSpec& spec, const SettingValues& facts) {
    return std::vector<Column>{features_column(spec, facts), targets_column(spec, facts)};
  };
  kind.make = [](const models::ModelSpec& spec) -> std::unique_ptr<Task> {
    return std::make_unique<Regression>(models::make_classifier(spec));
  };
  return kind;
}

}  // namespace aloft
