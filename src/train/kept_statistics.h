// Running statistics beside a step: what its forward pass moves for good, whatever becomes of its
// update. Whether it has ruined them, and how they were before.
#pragma once

#include <cstddef>
#include <string>
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

  // From here on ruined() looks at those that are finite now: a mask may be infinite for good.
  void watch();
  // Behind a step: the name of the first whose values are not finite any more; "": none.
  std::string ruined() const;

 private:
  std::vector<VariablePtr> buffers_, watched_;
  std::vector<std::vector<std::byte>> values_;
};

}  // namespace aloft
