// Inside: where ops of an update stand.
#pragma once

#include "graph/scope.h"

namespace aloft {

// What follows belongs to the update phase, is governed by no precision policy (the update is
// fp32 throughout) and is not differentiated.
class UpdatePhase {
 public:
  UpdatePhase() : scope_(where()) {}

 private:
  static Where where() {
    Where w = current_where();
    w.phase = Phase::Update;
    w.pass = "minimize";
    w.policy = {};
    return w;
  }
  NoGrad no_grad_;
  Scope scope_;
};

}  // namespace aloft
