// The lives of a program's activations, from who uses them, and offsets for all of them.
#include <algorithm>
#include <vector>

#include "plan/happens_before.h"
#include "plan/lifetime.h"
#include "plan/plan.h"

namespace aloft {
namespace {

void find_lives(Program& p) {
  const HappensBefore order(p);
  const int end = static_cast<int>(p.instructions.size());
  for (PlannedBuffer& b : p.buffers) {
    const bool is_short = b.arena == Arena::Activations;
    b.first = is_short ? end : 0;  // variables and inputs are there throughout
    b.last = is_short ? 0 : end;
  }
  for (int i = 0; i < end; ++i) {
    const int first = order.first(i), last = order.last(i);
    const auto uses = [&](int buffer) {
      PlannedBuffer& b = p.buffers[static_cast<std::size_t>(buffer)];
      b.first = std::min(b.first, first);
      b.last = std::max(b.last, last);
    };
    const Instruction& ins = p.instructions[static_cast<std::size_t>(i)];
    for (const BufferRef& r : ins.in) uses(r.buffer);
    for (const BufferRef& r : ins.out) uses(r.buffer);
    if (ins.scratch >= 0) uses(ins.scratch);
  }
  for (const NamedRef& r : p.outputs) p.buffers[static_cast<std::size_t>(r.ref.buffer)].last = end;
  for (PlannedBuffer& b : p.buffers)
    if (b.first > b.last) b.first = b.last = 0;  // nobody uses it
}

}  // namespace

void place_activations(Program& p) {
  find_lives(p);
  std::vector<Lifetime> lives;
  std::vector<PlannedBuffer*> which;
  for (PlannedBuffer& b : p.buffers)
    if (b.arena == Arena::Activations) {
      lives.push_back({b.first, b.last, b.bytes});
      which.push_back(&b);
    }
  const Offsets offsets = place(lives);
  for (std::size_t i = 0; i < which.size(); ++i) which[i]->placement.offset = offsets.offsets[i];
  p.activation_lower_bound = offsets.lower_bound;
}

}  // namespace aloft
