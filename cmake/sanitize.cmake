# ALOFT_SANITIZE names the sanitizers; a finding ends the program, so that a test fails on it.
if(ALOFT_SANITIZE)
  set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1")
  add_compile_options(-fsanitize=${ALOFT_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ALOFT_SANITIZE})
endif()
# The libraries with coverage marks for libFuzzer (tests/fuzz/).
option(ALOFT_FUZZ "Build the fuzz targets; needs clang 16 or newer" OFF)
if(ALOFT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
endif()
# For tests of what a sanitizer replaces: the allocator, the process's memory.
if(ALOFT_SANITIZE OR ALOFT_FUZZ)
  set(ALOFT_SANITIZED 1)
else()
  set(ALOFT_SANITIZED 0)
endif()
