#include "frontend/draws.h"

#include <algorithm>

#include "frontend/random.h"
#include "ops/graph_emitter.h"
#include "scalar/philox_seed.h"

namespace aloft {

void write_draw_state(const Draw& draw, int before, std::int64_t* state) {
  const auto* now = static_cast<const std::int64_t*>(random_state()->data);
  std::copy(now, now + 3, state);
  if (before == 0) return;
  const std::int64_t key = random_key_of(draw.where, draw.op, draw.occurrence + before);
  state[0] = static_cast<std::int64_t>(scalar::seed_as(static_cast<std::uint64_t>(now[0]),
                                                       static_cast<std::uint64_t>(key),
                                                       static_cast<std::uint64_t>(draw.key)));
}

}  // namespace aloft
