// Max pooling by 2 x 2 windows that do not overlap, over runs of f32: two rows of x in, one row of
// results out. The first of equal maxima wins, and a NaN before everything.
#pragma once

#include <cstdint>

namespace aloft::cpu {

// Results that one call may make; buffers hold kPoolSlack elements more than their share.
inline constexpr std::int64_t kPoolRun = 512;
inline constexpr std::int64_t kPoolSlack = 64;

// y[i] is the winner of top[2i], top[2i + 1], bottom[2i], bottom[2i + 1]. Writes whole vectors.
void max_of_pairs(const float* top, const float* bottom, float* y, std::int64_t n);

// Writes dy[i] over the winner, zeros over the other three. Whole vectors.
void max_of_pairs_grad(const float* dy, float* top, float* bottom, std::int64_t n);

}  // namespace aloft::cpu
