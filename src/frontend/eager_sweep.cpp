// What of the tape nobody can ask a gradient of any more is dropped: evaluation without NoGrad must
// not hold the values of past batches. A node stays while any value that depends on it, or one of
// its own results, is held outside the tape. No bit of any gradient changes by it.
#include <algorithm>
#include <vector>

#include "frontend/eager.h"

namespace aloft {

namespace {
// Below these a sweep is not worth its time.
constexpr std::size_t kFewBytes = std::size_t{32} << 20;
constexpr std::uint32_t kFewNodes = 4096;
}  // namespace

void EagerEmitter::sweep_if_grown() {
  if (tape_bytes_ < sweep_at_bytes_ && tape_.capacity() < sweep_at_nodes_) return;
  sweep();
}

// Nodes with a value that somebody other than the tape and its caches holds, and all that those
// values were computed from.
std::vector<bool> EagerEmitter::reachable_nodes() const {
  std::map<const void*, long> own;  // references of ours to each cell
  for (const auto& [id, c] : values_) ++own[c.get()];
  for (const auto& [name, c] : states_) ++own[c.get()];
  if (outer_) outer_->count_cached(own);
  std::vector<bool> kept(tape_.capacity(), false);
  for (const auto& [id, c] : values_)
    if (c.use_count() > own[c.get()]) kept[id.node] = true;
  // The variables as they are now; few, and every forward reads them again.
  for (const auto& [name, c] : states_)
    if (c->generation == generation_) kept[c->id.node] = true;
  for (std::uint32_t n = tape_.capacity(); n-- > 0;)
    if (kept[n])
      for (ValueId v : tape_.node(n).in) kept[v.node] = true;
  return kept;
}

void EagerEmitter::sweep() {
  const std::vector<bool> kept = reachable_nodes();
  Graph old = std::move(tape_);
  tape_ = Graph();
  tape_.name = old.name;
  const auto cells = std::move(values_);
  values_.clear();
  std::map<ValueId, ValueId> renamed;
  tape_bytes_ = 0;
  for (std::uint32_t n = 0; n < old.capacity(); ++n) {
    if (!kept[n]) continue;
    const Node& node = old.node(n);
    std::vector<ValueId> in;
    for (ValueId v : node.in) in.push_back(renamed.at(v));
    const std::uint32_t now = tape_.add(node.op, node.attrs, std::move(in), node.out, node.where);
    for (std::uint32_t i = 0; i < node.out.size(); ++i) {
      const std::shared_ptr<EagerCell>& c = cells.at({n, i});
      renamed[{n, i}] = c->id = values_.emplace(ValueId{now, i}, c).first->first;
      tape_bytes_ += c->type.max_bytes();
    }
  }
  sweep_at_bytes_ = std::max(kFewBytes, 2 * tape_bytes_);
  sweep_at_nodes_ = std::max(kFewNodes, 2 * tape_.capacity());
  if (outer_) outer_->rename_values(renamed);
}

}  // namespace aloft
