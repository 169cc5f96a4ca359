// Where a tensor that a caller gave lives.
#pragma once

#include "graph/tensor.h"

namespace aloft {

// UserError E0302 where it is an empty handle.
inline Emitter& emitter_of(const Tensor& t) {
  static_cast<void>(t.type());
  return *t.emitter();
}

}  // namespace aloft
