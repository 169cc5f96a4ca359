#include "frontend/draws.h"

#include <algorithm>

#include "frontend/random.h"
#include "ops/graph_emitter.h"
#include "scalar/philox_seed.h"

namespace aloft {

void write_draw_state(const Draw& draw, int before, std::int64_t* state) {
  const std::array<std::int64_t, 3> now = random_numbers();
  std::copy(now.begin(), now.end(), state);
  if (before == 0) return;
  const std::int64_t key = random_key_of(draw.where, draw.op, draw.occurrence + before);
  state[0] = static_cast<std::int64_t>(scalar::seed_as(static_cast<std::uint64_t>(now[0]),
                                                       static_cast<std::uint64_t>(key),
                                                       static_cast<std::uint64_t>(draw.key)));
}

}  // namespace aloft
