// Writing new keys or values into a cache, at a position that is only known when the program runs.
#pragma once

#include "ops/declared.h"

namespace aloft {

// cache [B, Tmax, ...], rows [B, n, ...], position i32[] -> the cache with rows
// [position, position + n) replaced; rows that would lie outside are dropped.
Tensor cache_write(Operand cache, Operand rows, Operand position);

}  // namespace aloft
