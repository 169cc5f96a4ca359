// Which checkpoints of a run stay and which make room: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace aloft {

// A whole checkpoint of the run, as far as the choice depends on it.
struct KeptCheckpoint {
  std::int64_t step = 0;
  bool healthy = true;
  std::optional<double> validation_loss = {};
  bool for_good = false;          // the rules that it was saved under keep it for good
  std::string validated_on = {};  // losses on the same validation data can be compared
};

struct KeepPolicy {
  std::int64_t newest = 3;  // so many of the newest healthy ones; 0: all checkpoints
  std::int64_t best = 1;    // so many with the lowest validation loss, of each validation data
  std::int64_t every = 0;   // those of steps that this divides; 0: none
  // Of a run that may go back, so many of the newest healthy ones that it goes back to: of steps
  // that `back_every` divides; 0: of all.
  std::int64_t back = 0, back_every = 0;
  // Those up to this step stay: the run has gone back so far, and is not past its trouble.
  std::int64_t gone_back_to = -1;
};

// Steps of the checkpoints that go, of `all` in any order. What stays: `saved` (the one just
// written), the newest healthy one whatever the policy says, and what the policy keeps, which are
// healthy ones; so do those that were kept for good once, whatever it says now. Of equal validation
// losses the earlier is the better.
std::vector<std::int64_t> checkpoints_to_remove(std::vector<KeptCheckpoint> all, KeepPolicy policy,
                                                std::int64_t saved);

}  // namespace aloft
