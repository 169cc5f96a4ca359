# Instruction sets of our own kernels. Highway compiles every kernel once per target; two vector
# targets and the scalar one keep the build short: AVX2 and AVX-512 (on Arm, what Highway offers).
# ALOFT_MAX_ISA=avx2 leaves AVX-512 out, for tests as on a processor without it; oneDNN is capped
# beside it by ONEDNN_MAX_CPU_ISA=AVX2 in the test environment.
set(ALOFT_MAX_ISA "" CACHE STRING "avx2, or empty: the best that the processor has")
set_property(CACHE ALOFT_MAX_ISA PROPERTY STRINGS "" avx2)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  if(ALOFT_MAX_ISA STREQUAL "avx2")
    # ALOFT_MAX_ISA_AVX2 also switches off the guarded files with AMX and bf16 intrinsics.
    add_compile_definitions(ALOFT_MAX_ISA_AVX2
                            "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3)")
  elseif(ALOFT_MAX_ISA STREQUAL "")
    add_compile_definitions("HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4)")
  else()
    message(FATAL_ERROR "ALOFT_MAX_ISA is '${ALOFT_MAX_ISA}'; it may be avx2 or empty")
  endif()
endif()
