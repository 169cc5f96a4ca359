#include "data/token_examples.h"

namespace aloft {

ExampleBatch example_batch(const Batch& b) {
  return {{std::as_bytes(b.inputs), std::as_bytes(b.targets)}, b.rows, b.counted_targets};
}

const ExampleBatch* TokenExamples::next() {
  const Batch* b = loader_.next();
  if (!b) return nullptr;
  batch_.columns.assign({std::as_bytes(b->inputs), std::as_bytes(b->targets)});
  batch_.rows = b->rows;
  batch_.counted_targets = b->counted_targets;
  return &batch_;
}

}  // namespace aloft
