// Running statistics as they were before a step: what its forward pass moves for good, whatever
// becomes of its update.
#pragma once

#include <cstddef>
#include <vector>

#include "frontend/module.h"

namespace aloft {

class KeptStatistics {
 public:
  // Of the model's buffers; it outlives this.
  explicit KeptStatistics(const nn::Module& model) : buffers_(model.buffers()) {}

  // Between two steps. A model without buffers costs nothing.
  void keep();
  // As they were when they were kept last.
  void restore() const;

 private:
  std::vector<VariablePtr> buffers_;
  std::vector<std::vector<std::byte>> values_;
};

}  // namespace aloft
