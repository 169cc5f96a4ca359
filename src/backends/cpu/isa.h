// Which instruction sets this process uses: what the processor has, capped by the environment
// variable ALOFT_MAX_ISA (avx2, avx512, amx), the same cap for our kernels, Highway and oneDNN.
#pragma once

#include <string>

namespace aloft::cpu {

struct CpuFeatures {
  bool avx2 = false;         // with FMA and F16C
  bool avx512 = false;       // F, BW, DQ, VL
  bool avx512_bf16 = false;  // bf16 dot products and conversions
  bool amx_bf16 = false;     // bf16 matrix tiles, permitted by the operating system
};

// Detects, applies the cap to Highway and oneDNN, and asks the operating system for the matrix
// tiles' state. Once per process, at the first call, which must come before oneDNN or Highway
// choose their code: the back end's factory calls it. EnvironmentError E0410 for a wrong
// ALOFT_MAX_ISA or a processor without AVX2.
const CpuFeatures& cpu_features();

// "avx2 avx512 avx512_bf16 amx_bf16"
std::string describe(const CpuFeatures& features);

}  // namespace aloft::cpu
