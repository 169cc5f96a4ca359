// The first batches of a run's training as a file, for programs that are to learn from the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "sources/run_data.h"
#include "types/shape.h"

namespace aloft {

struct WrittenBatches {
  std::int64_t steps = 0, batches = 0, examples = 0;  // batches: micro-batches of all steps
  struct Column {
    std::string name;
    TensorType type;
  };
  std::vector<Column> columns;
};

// Writes what the first `steps` steps of the recipe are given, in order: of each column a tensor
// [micro-batches of all steps, train.batch, ...], token ids and classes as i64, which is what
// PyTorch takes for them. Metadata: `steps`, `accumulate` (micro-batches a step), `seed`.
// UserError E0898: more steps than the run makes, or more than a file has room for. Errors of the
// data, EnvironmentError E0603.
WrittenBatches write_batches(Recipe recipe, const RunData& data, std::int64_t steps,
                             const Path& path);

}  // namespace aloft
