// Each layer of a recipe's model in low types beside f32, on a few batches: what `adaptive`
// precision chooses by.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "data/example_source.h"
#include "models/model_spec.h"
#include "recipe/choose_layers.h"
#include "recipe/recipe.h"
#include "tasks/task.h"

namespace aloft {

// Batches of training from the run's first on, in its order.
using Batches = std::function<std::unique_ptr<ExampleSource>(const std::vector<Column>& columns)>;

// How many batches are looked at: of an error the largest counts.
inline constexpr int kMeasuredBatches = 4;

// How much is looked at: batches, and examples of each where the recipe's batch has more.
struct MeasuredPart {
  std::int64_t rows = std::numeric_limits<std::int64_t>::max();
  int batches = kMeasuredBatches;
};

// The errors of a model with the weights that the recipe's seed gives. Gradients are those of a
// loss that is scaled as training in fp16 scales it: by the recipe's first scale; one that is
// dynamic is halved while a layer overflows that has not in its forward phase. `low`: types of the
// device. A line says what it takes before it begins. The model that this makes is gone behind it;
// the process's random state is another. EnvironmentError E0401 where the memory is not enough,
// DataError of the batches.
std::vector<LayerErrors> measure_layer_errors(const Recipe& recipe, const models::ModelSpec& spec,
                                              const std::vector<Column>& columns,
                                              const Batches& batches, std::span<const DType> low,
                                              const MeasuredPart& part = {});

}  // namespace aloft
