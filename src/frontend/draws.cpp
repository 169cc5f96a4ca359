#include "frontend/draws.h"

#include "frontend/random.h"
#include "ops/graph_emitter.h"
#include "scalar/philox_seed.h"

namespace aloft {

std::array<std::int64_t, 3> draw_state(const Draw& draw, int before) {
  std::array<std::int64_t, 3> state = random_numbers();
  if (before == 0) return state;
  const std::int64_t key = random_key_of(draw.where, draw.op, draw.occurrence + before);
  state[0] = static_cast<std::int64_t>(scalar::seed_as(static_cast<std::uint64_t>(state[0]),
                                                       static_cast<std::uint64_t>(key),
                                                       static_cast<std::uint64_t>(draw.key)));
  return state;
}

}  // namespace aloft
