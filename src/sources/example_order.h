// Inside: in what order the examples of a source that lie in memory are handed out, and what is
// recorded of the files that they come from.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "data/array_loader.h"
#include "recipe/recipe.h"

namespace aloft {

// Without end, shuffled by the run's seed, from `position` on.
ArrayLoaderOptions training_order(const Recipe& recipe, std::uint64_t position);
// Once, in their order.
ArrayLoaderOptions validation_order(const Recipe& recipe);
// Which of so many examples the step that ends at `position` has read, in training_order().
std::vector<std::uint64_t> examples_of_step(const Recipe& recipe, std::uint64_t examples,
                                            std::uint64_t position);

// [[path, bytes, 0], ...]
nlohmann::json record_of_files(const std::vector<Path>& files);

}  // namespace aloft
