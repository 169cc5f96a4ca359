// A copy of bytes that nobody reads soon: they are written beside the caches, which keep what is
// being computed with, and no line of the target is fetched before it is overwritten.
#pragma once

#include <cstddef>
#include <span>

namespace aloft {

// `to` is as long as `from`; neither overlaps. Returns when other threads may read `to`.
void copy_past_caches(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace aloft
