// Who does what within one wave of a product by strips: every thread has a range of the items for
// itself, because neighbours share operands, and takes from the others' when it is through. Pieces
// of the packed operand are made by the first thread that needs them. Who does what changes no bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

namespace aloft::cpu {

class StripSchedule {
 public:
  StripSchedule(int threads, std::int64_t pieces)
      : counters_(std::make_unique<Counter[]>(2 * static_cast<std::size_t>(threads))),
        pieces_(std::make_unique<std::atomic<std::uint64_t>[]>(pieces)),
        threads_(threads) {}

  // The waves of a run are numbered from first_wave() on, by each thread for itself; all threads
  // finish a wave before any begins the next. After the run, one thread calls finish().
  std::uint64_t first_wave() const { return finished_ + 1; }
  void finish(std::uint64_t waves) {
    finished_ += waves;
    clear(0);
    clear(1);
  }
  // Called by one thread during each wave: makes ready the counters of the wave after it.
  void prepare_next(std::uint64_t wave) { clear((wave + 1) % 2); }

  // The thread's next of `items` items, or -1.
  std::int64_t take(std::uint64_t wave, int thread, int threads, std::int64_t items) {
    for (int i = 0; i < threads; ++i) {
      const int range = (thread + i) % threads;
      const std::int64_t begin = items * range / threads, end = items * (range + 1) / threads;
      std::atomic<std::int64_t>& next = counter(wave % 2, range);
      if (begin + next.load(std::memory_order_relaxed) >= end) continue;
      const std::int64_t item = begin + next.fetch_add(1, std::memory_order_relaxed);
      if (item < end) return item;
    }
    return -1;
  }

  // Is the piece this thread's to make? Then it calls made() behind it.
  bool claim(std::int64_t piece, std::uint64_t wave) {
    std::uint64_t seen = pieces_[piece].load(std::memory_order_acquire);
    return seen < 2 * wave &&
           pieces_[piece].compare_exchange_strong(seen, 2 * wave, std::memory_order_acq_rel);
  }
  void made(std::int64_t piece, std::uint64_t wave) {
    pieces_[piece].store(2 * wave + 1, std::memory_order_release);
  }
  // Whoever claimed the piece waits for nothing until it is made.
  void wait(std::int64_t piece, std::uint64_t wave) {
    for (int spins = 0; pieces_[piece].load(std::memory_order_acquire) != 2 * wave + 1; ++spins)
      if (spins > 200) std::this_thread::yield();
  }

 private:
  struct alignas(64) Counter {
    std::atomic<std::int64_t> next{0};
  };
  std::atomic<std::int64_t>& counter(std::uint64_t half, int range) {
    return counters_[half * threads_ + range].next;
  }
  void clear(std::uint64_t half) {
    for (int i = 0; i < threads_; ++i) counter(half, i).store(0, std::memory_order_relaxed);
  }

  std::unique_ptr<Counter[]> counters_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> pieces_;
  int threads_;
  std::uint64_t finished_ = 0;
};

}  // namespace aloft::cpu
