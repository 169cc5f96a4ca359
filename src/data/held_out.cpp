#include "data/held_out.h"

#include "data/order.h"

namespace aloft {

std::vector<bool> held_out_of(std::uint64_t examples, std::uint64_t held_out, std::uint64_t seed) {
  std::vector<bool> is_held(examples);
  if (examples == 0) return is_held;
  const Permutation shuffle(examples, mix_keys(seed, examples));
  for (std::uint64_t i = 0; i < examples; ++i) is_held[i] = shuffle(i) < held_out;
  return is_held;
}

}  // namespace aloft
