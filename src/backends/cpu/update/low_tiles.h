// Tiles of f32 to and from parameters that are kept in fewer bits: the ways that vectors/tiles.h
// has not, because updates alone need them.
#pragma once

#include <cstdint>

#include "scalar/float_formats.h"
#include "scalar/split_float.h"
#include "types/dtype.h"

namespace aloft::cpu {

// n masters of bf16 parameters and their remainders (scalar::joined), and back (scalar::put_split).
// The first is number 0 of a byte of bits.
void join_tile(const scalar::Bf16* near, const scalar::ConstRests& rests, float* tile,
               std::int64_t n);
void split_tile(const float* tile, scalar::Bf16* near, const scalar::Rests& rests, std::int64_t n);

// As narrow(), past the caches where dst lies at a multiple of 64 bytes: for copies that are
// written, never read, and more than caches hold. flush_streams() comes before others read them.
void stream_tile(const float* tile, DType to, void* dst, std::int64_t n);
void flush_streams();

}  // namespace aloft::cpu
