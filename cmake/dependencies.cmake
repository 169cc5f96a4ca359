# Every dependency is a Debian package; nothing is downloaded at configure time.
find_package(Threads REQUIRED)
if(ALOFT_FUZZ)
  # Debian cannot hold clang 16's OpenMP runtime beside clang 14's, which make tsan needs. Fuzz targets
  # run in one thread: clang ignores the pragmas, and a header stands for the few calls.
  add_library(OpenMP::OpenMP_CXX INTERFACE IMPORTED)
  set_target_properties(OpenMP::OpenMP_CXX PROPERTIES
                        INTERFACE_INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/tests/fuzz/one_thread)
  add_compile_options(-Wno-unknown-pragmas -Wno-source-uses-openmp)
else()
  find_package(OpenMP REQUIRED)
endif()
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
# Not find_package(dnnl): Debian's package file demands OpenCL's headers, which a CPU does not need.
find_path(DNNL_INCLUDE oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE})
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
find_path(TOMLPP_INCLUDE toml++/toml.h REQUIRED)
find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
if(ALOFT_TESTS)
  find_package(GTest REQUIRED)
endif()
if(ALOFT_BENCH)
  find_package(benchmark REQUIRED)
endif()
