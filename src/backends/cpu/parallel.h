// Sharing work out to the one pool (OpenMP). How work is cut depends on its size alone, never on
// the number of threads: a thread takes whole chunks, and whatever crosses chunks is combined in
// the chunks' order. So the same inputs give the same bits on any number of threads.
//
// A body must not throw and must not allocate.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace aloft::cpu {

// What a chunk should cost at least, in units of one simple element-wise result: some 10 us, a few
// times what waking the pool costs.
inline constexpr std::int64_t kChunkWork = 16384;

// [0, n) in chunks of `grain` items (the last may be shorter).
struct Chunks {
  std::int64_t n = 0, grain = 1, count = 0;
  std::int64_t begin(std::int64_t chunk) const { return chunk * grain; }
  std::int64_t end(std::int64_t chunk) const { return std::min(n, (chunk + 1) * grain); }
};

// `cost` is one item's work in the units of kChunkWork. `most` bounds the number of chunks, for
// partial results that are kept one a chunk.
inline Chunks chunks_of(std::int64_t n, std::int64_t cost = 1, std::int64_t most = INT64_MAX) {
  Chunks c;
  c.n = n;
  c.grain = std::max<std::int64_t>(1, kChunkWork / std::max<std::int64_t>(1, cost));
  // Element-wise chunks start on cache lines of every type.
  if (cost <= 1) c.grain = (c.grain + 63) / 64 * 64;
  if (n > 0 && (n - 1) / c.grain + 1 > most) c.grain = (n - 1) / most + 1;
  c.count = n > 0 ? (n - 1) / c.grain + 1 : 0;
  return c;
}

// Threads that a parallel region would have now: never a result's business.
inline int pool_size() { return omp_get_max_threads(); }
inline int pool_rank() { return omp_get_thread_num(); }

// body() on each of at most `threads` threads. One thread needs no region: a team of one costs two
// system calls in GCC's OpenMP, which wakes the nobody that waits at its barriers. (Within another
// region it needs one all the same: the body's barriers must not be that region's.)
template <class Body>
void on_team(int threads, const Body& body) {
  const int team = std::max(1, std::min(threads, pool_size()));
  if (team == 1 && !omp_in_parallel()) return body();
#pragma omp parallel num_threads(team)
  body();
}

// body(chunk) for chunk in [0, count), on at most `threads` threads: a body that has scratch of its
// own for each of the threads that its call was prepared for must not meet more of them, however
// large the pool has since become. Few chunks do not make a smaller team: GCC's OpenMP ends the
// threads that a team leaves out, and starts new ones for the next.
template <class Body>
void for_each_chunk(std::int64_t count, const Body& body, int threads = pool_size()) {
  const int team = count <= 1 ? 1 : std::min(threads, pool_size());
  if (team <= 1) {
    for (std::int64_t chunk = 0; chunk < count; ++chunk) body(chunk);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(team)
  for (std::int64_t chunk = 0; chunk < count; ++chunk) body(chunk);
}

// body(begin, end) over [0, n).
template <class Body>
void parallel_for(std::int64_t n, std::int64_t cost, const Body& body, int threads = pool_size()) {
  const Chunks c = chunks_of(n, cost);
  for_each_chunk(
      c.count, [&](std::int64_t i) { body(c.begin(i), c.end(i)); }, threads);
}

}  // namespace aloft::cpu
