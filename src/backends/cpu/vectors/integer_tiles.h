// Tiles (tiles.h) of integers and bools, in 64 bits: exact, cut to the type's width on the way out,
// so that they wrap around.
#pragma once

#include <cstdint>

#include "types/dtype.h"

namespace aloft::cpu {

// n elements of an integer type or bool at src: where they lie if they are i64, else in `buffer`.
const std::int64_t* open_i64(DType t, const void* src, std::int64_t* buffer, std::int64_t n);
// n results to elements at dst, bool is != 0; nothing is done where `tile` is dst already.
void close_i64(DType t, const std::int64_t* tile, void* dst, std::int64_t n);

}  // namespace aloft::cpu
