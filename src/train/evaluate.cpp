#include "train/evaluate.h"

#include <fmt/format.h>

#include "base/interrupt.h"
#include "tasks/loss_text.h"

namespace aloft {

std::optional<std::vector<double>> evaluate(Runner& runner, ExampleSource& examples,
                                            std::int64_t batches) {
  std::vector<double> sums;
  std::int64_t count = 0, made = 0;
  while (const ExampleBatch* b = examples.next()) {
    if (InterruptScope::asked()) return std::nullopt;
    const std::vector<double>& means = runner.evaluate(*b);
    sums.resize(means.size());
    for (std::size_t i = 0; i < means.size(); ++i)
      sums[i] += means[i] * static_cast<double>(b->counted_targets);
    count += b->counted_targets;
    if (++made == batches) break;
  }
  if (count == 0) return std::nullopt;
  for (double& sum : sums) sum /= static_cast<double>(count);
  return sums;
}

void add_measures_of_means(ValidationLoss& validation, const std::vector<double>& means,
                           const std::vector<Measure>& measures) {
  std::vector<Measure>& said = validation.measures;
  said.push_back(
      {"average_loss", means[0], fmt::format("{} of the mean weights", loss_text(means[0]))});
  if (means.size() == 1) return;  // what is measured besides follows from the loss
  for (const Measure& m : measures)
    said.push_back({"average_" + m.name, m.value, m.text + " of the mean weights"});
}

}  // namespace aloft
