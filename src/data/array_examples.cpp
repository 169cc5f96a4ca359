#include "data/array_examples.h"

namespace aloft {

const ExampleBatch* ArrayExamples::next() {
  const ArrayBatch* b = loader_.next();
  if (!b) return nullptr;
  const auto goal = b->labels.empty() ? std::as_bytes(b->targets) : std::as_bytes(b->labels);
  batch_.columns.assign({std::as_bytes(b->features), goal});
  batch_.rows = batch_.counted_targets = b->rows;
  return &batch_;
}

}  // namespace aloft
