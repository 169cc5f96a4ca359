// The loss of an evaluation, with what else it measured.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/measure.h"

namespace aloft {

struct ValidationLoss {
  double loss = 0;                // the mean over the targets that count; of text in nats a token
  std::vector<Measure> measures;  // perplexity, bits per byte; accuracy: as the task has them

  std::optional<double> measure(std::string_view name) const;  // nothing where there is none
};

// "validation loss 3.0123 (perplexity 20.33, 1.352 bits per byte)".
std::string describe(const ValidationLoss& loss);

}  // namespace aloft
