// What the probe has left of steps that a run goes back behind: a run that goes on from a
// checkpoint makes them once more, or others.
#pragma once

#include "run/listener.h"

namespace aloft {

// Removes them where a run begins, whether or not it has a probe by now, with what was not written
// whole. Comes before whoever writes into the folder.
class AbandonedSteps : public Listener {
 public:
  // What cannot be removed stays, and is said.
  void run_begun(const RunBegun& e, Control& run) override;
};

}  // namespace aloft
