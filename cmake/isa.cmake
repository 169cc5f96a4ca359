# Instruction sets of our own kernels. Highway compiles every kernel once per target; two vector
# targets and the scalar one keep the build short: AVX2 and AVX-512. At run time the environment
# variable ALOFT_MAX_ISA (avx2, avx512, amx) caps our kernels, Highway and oneDNN alike.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_definitions("HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4)")
endif()
