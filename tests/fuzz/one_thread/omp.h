// OpenMP for one thread: what the fuzz build has instead of a runtime (cmake/dependencies.cmake).
#pragma once

inline int omp_get_max_threads() { return 1; }
inline int omp_get_thread_num() { return 0; }
inline void omp_set_num_threads(int) {}
