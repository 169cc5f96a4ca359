// What a state comes to on the validation part of the data.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/example_source.h"
#include "run/validation_loss.h"
#include "train/runner.h"

namespace aloft {

// What the task evaluates, the loss first: means over the counted targets of all batches of
// `examples`, or of the first `batches` alone where that is above 0. Nothing where there is no
// target, or a signal asks for the end meanwhile (interrupt.h). The errors of the source.
std::optional<std::vector<double>> evaluate(Runner& runner, ExampleSource& examples,
                                            std::int64_t batches);

// Adds to the validation of a state what its weights' means come to, where the optimizer keeps
// such: `means` as of evaluate(), `measures` what follows from them.
void add_measures_of_means(ValidationLoss& validation, const std::vector<double>& means,
                           const std::vector<Measure>& measures);

}  // namespace aloft
