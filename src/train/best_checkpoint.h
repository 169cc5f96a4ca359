// Saves each state whose validation loss is the lowest so far (train.keep_best), so that it can
// stay.
#pragma once

#include "run/listener.h"

namespace aloft {

class BestCheckpoint : public Listener {
 public:
  void evaluation_done(const EvaluationDone& e, Control& run) override {
    if (e.is_best()) run.save();
  }
};

}  // namespace aloft
