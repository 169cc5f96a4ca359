// A return of a run to a checkpoint, as the manifests behind it and the run's record keep it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace aloft {

// The run had come to `from` and went on behind `to`, with other data: what it was given between
// its two states is passed over.
struct Rollback {
  std::int64_t from = 0;  // the step whose numbers were the reason
  std::int64_t to = 0;    // behind which the run went on; below `from`
  // The farthest step that this row of returns came from: a healthy checkpoint of that step or a
  // later one ends the row, because the trouble is passed then.
  std::int64_t farthest = 0;
  std::int64_t in_a_row = 1;  // this one included
  // Examples handed out: at the checkpoint, and where the run goes on. What lies between is not
  // trained on.
  std::uint64_t data_from = 0, data_to = 0;
  std::string reason = {};  // "the loss is 8.1, and the median of the last 50 steps 3.2"
  friend bool operator==(const Rollback&, const Rollback&) = default;
};

// Examples that a run was handed out on the way to where it stands and has no steps of. What lies
// behind a return to an earlier checkpoint counts no more: that return passes it over as a whole.
inline std::uint64_t passed_over(const std::vector<Rollback>& all) {
  std::uint64_t examples = 0;
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  for (auto r = all.rbegin(); r != all.rend(); ++r) {
    if (r->to > earliest) continue;
    earliest = r->to;
    examples += r->data_to - r->data_from;
  }
  return examples;
}

}  // namespace aloft
