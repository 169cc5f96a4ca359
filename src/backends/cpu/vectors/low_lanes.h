// 16 values of f32, bf16 or f16 in memory as a vector of f32, in intrinsics: for kernels that take
// instructions which Highway 1.0.3 does not reach, on processors with AVX512-BF16.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include "types/dtype.h"

#define ALOFT_LANES __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))

namespace aloft::cpu {

// Lanes outside `mask` are 0, and are not read.
ALOFT_LANES inline __m512 load_lanes(const void* p, __mmask16 mask, DType type) {
  if (type == DType::F32) return _mm512_maskz_loadu_ps(mask, p);
  const __m256i low = _mm256_maskz_loadu_epi16(mask, p);
  if (type == DType::F16) return _mm512_cvtph_ps(low);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(low), 16));
}

// Rounded to the nearest, ties to even. What f32 holds only as a denormal becomes 0 in bf16, as the
// processor's instruction has it; in f16 it is below every number anyway.
ALOFT_LANES inline void store_lanes(void* p, __mmask16 mask, __m512 v, DType type) {
  if (type == DType::F32)
    _mm512_mask_storeu_ps(p, mask, v);
  else if (type == DType::BF16)
    _mm256_mask_storeu_epi16(p, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)));
  else
    _mm256_mask_storeu_epi16(p, mask,
                             _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

}  // namespace aloft::cpu

#endif
