// Batches of examples of any kind, as whoever trains takes them: the same for tokens, images and
// tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace aloft {

// One batch, valid until its source's next call: a column for each input of a step, in their order,
// with the elements of all rows, row by row, padding included.
struct ExampleBatch {
  std::vector<std::span<const std::byte>> columns;
  std::int64_t rows = 0;             // actual batch size; rows beyond it are padding
  std::int64_t counted_targets = 0;  // targets that count in the loss
  // What a step gets through, such as tokens that are no padding; 0: as much in each row as the
  // recipe says of an example.
  std::int64_t units = 0;
};

class ExampleSource {
 public:
  virtual ~ExampleSource() = default;
  // Null behind the last epoch. The errors of the loader behind it.
  virtual const ExampleBatch* next() = 0;
  virtual std::uint64_t position() const = 0;  // examples handed out so far
  virtual std::uint64_t samples_per_epoch() const = 0;
};

}  // namespace aloft
