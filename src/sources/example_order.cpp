#include "sources/example_order.h"

#include <algorithm>

#include "recipe/run_length.h"

namespace aloft {

ArrayLoaderOptions training_order(const Recipe& recipe, std::uint64_t position) {
  ArrayLoaderOptions o;
  o.batch = recipe.train.batch;
  o.seed = recipe.train.seed;
  o.last = LastBatch::Wrap;
  o.position = position;
  return o;
}

ArrayLoaderOptions validation_order(const Recipe& recipe) {
  ArrayLoaderOptions o;
  o.batch = recipe.train.batch;
  o.shuffle = false;
  o.epochs = 1;
  return o;
}

std::vector<std::uint64_t> examples_of_step(const Recipe& recipe, std::uint64_t examples,
                                            std::uint64_t position) {
  const ArrayLoaderOptions o = training_order(recipe, position);
  const BatchWalk walk(examples, static_cast<std::uint64_t>(o.batch), o.last);
  const auto step = std::min(position, static_cast<std::uint64_t>(windows_a_step(recipe)));
  std::vector<std::uint64_t> found;
  for (std::uint64_t at = position - step; at < position; ++at)
    found.push_back(sample_at(walk.sample(at, 0), examples, o));
  return found;
}

nlohmann::json record_of_files(const std::vector<Path>& files) {
  nlohmann::json record = nlohmann::json::array();
  for (const Path& path : files) record.push_back({path.string(), size_of_file(path), 0});
  return record;
}

}  // namespace aloft
