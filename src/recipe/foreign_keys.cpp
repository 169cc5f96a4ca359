#include "recipe/foreign_keys.h"

#include <algorithm>
#include <iterator>

namespace aloft {
namespace {

constexpr std::string_view kOneSweep = "every update is one sweep over all tensors";
constexpr ForeignKey kKeys[] = {
    {"optimizer.foreach", "", kOneSweep},
    {"optimizer.fused", "", kOneSweep},
    {"optimizer.capturable", "", "a step asks the host nothing, and is part of the compiled plan"},
    {"optimizer.max_grad_norm", "optimizer.clip_norm", "the largest norm of all gradients"},
};

}  // namespace

std::span<const ForeignKey> foreign_keys() { return kKeys; }

const ForeignKey* foreign_key(std::string_view key) {
  const auto* const found = std::ranges::find(kKeys, key, &ForeignKey::key);
  return found == std::end(kKeys) ? nullptr : found;
}

}  // namespace aloft
