// A batch of a task's columns, drawn at random: for verbs that have no data, or must not depend on
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/example_source.h"
#include "tasks/column.h"

namespace aloft::cli {

// The same batch for every step.
class MadeUpBatch : public ExampleSource {
 public:
  // Whole numbers of each column's range, others from -1 to 1.
  MadeUpBatch(const std::vector<Column>& columns, std::int64_t rows);
  const ExampleBatch& batch() const { return batch_; }

  const ExampleBatch* next() override { return &batch_; }
  std::uint64_t position() const override { return 0; }
  std::uint64_t samples_per_epoch() const override {
    return static_cast<std::uint64_t>(batch_.rows);
  }

 private:
  std::vector<std::vector<std::byte>> bytes_;
  ExampleBatch batch_;
};

}  // namespace aloft::cli
