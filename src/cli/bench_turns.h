// The order in which a bench times a step and measures the limit that it is held against: in turns,
// so that a disturbance of the machine meets both.
#pragma once

#include <algorithm>
#include <functional>

namespace aloft::cli {

struct BenchTurns {
  std::function<void()> uncounted_step, timed_step, profiled_step;
  std::function<void()> limit_round;  // empty where there is no limit to measure
};

inline void take_turns(int steps, const BenchTurns& bench) {
  constexpr int kTurns = 4, kProfiled = 4;
  // No more than the steps that count: the first one, which is the process's first, does not.
  const int turns = bench.limit_round ? std::min(kTurns, std::max(1, steps - 1)) : 1;
  for (int turn = 0; turn < turns; ++turn) {
    // A step after something else finds other things in the caches, and does not count.
    if (turn > 0) bench.uncounted_step();
    const int timed = steps * (turn + 1) / turns - steps * turn / turns;
    for (int i = 0; i < timed; ++i) bench.timed_step();
    for (int i = 0; i < std::max(1, kProfiled / turns); ++i) bench.profiled_step();
    if (bench.limit_round) bench.limit_round();
  }
}

}  // namespace aloft::cli
