// The order of work within one wave of a matrix product: packing a column or a row of tiles comes
// one step before its first tile, so that while one thread reads memory another multiplies. Threads
// take items in turn; a tile waits for the packing that it needs, which was taken before it and
// waits for nothing. Who takes what changes no bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace aloft::cpu {

class TileQueue {
 public:
  enum class Kind : std::uint8_t { PackRow, PackColumn, Tile };
  struct Item {
    Kind kind;
    std::int32_t product, row, column;  // of tiles
  };

  TileQueue() = default;
  // For waves of at most this many products, tile rows and tile columns.
  TileQueue(std::int64_t products, std::int64_t rows, std::int64_t columns, bool packs_a,
            bool packs_b)
      : rows_(rows), columns_(columns) {
    for (std::int32_t p = 0; p < products; ++p) {
      if (packs_b) items_.push_back({Kind::PackColumn, p, 0, 0});
      if (packs_a) items_.push_back({Kind::PackRow, p, 0, 0});
      for (std::int32_t c = 0; c < columns; ++c) {
        if (packs_b && c + 1 < columns) items_.push_back({Kind::PackColumn, p, 0, c + 1});
        for (std::int32_t r = 0; r < rows; ++r) {
          if (packs_a && c == 0 && r + 1 < rows) items_.push_back({Kind::PackRow, p, r + 1, 0});
          items_.push_back({Kind::Tile, p, r, c});
        }
      }
    }
    row_ready_ = std::make_unique<std::atomic<std::uint32_t>[]>(products * rows);
    column_ready_ = std::make_unique<std::atomic<std::uint32_t>[]>(products * columns);
  }

  // The waves of a run are numbered from first_wave() on, by each thread for itself; all threads
  // finish a wave before any begins the next. After the run, one thread calls
  // finish().
  std::uint32_t first_wave() const { return finished_ + 1; }
  void finish(std::uint32_t waves) {
    finished_ += waves;
    next_[0] = next_[1] = 0;
  }
  // Called by one thread during each wave: makes ready the count of the wave after it.
  void prepare_next(std::uint32_t wave) { next_[(wave + 1) % 2] = 0; }

  // The next item of the wave, or null.
  const Item* take(std::uint32_t wave) {
    const std::int64_t i = next_[wave % 2].fetch_add(1, std::memory_order_relaxed);
    return i < static_cast<std::int64_t>(items_.size()) ? &items_[i] : nullptr;
  }

  void packed(const Item& item, std::uint32_t wave) {
    flag(item, item.kind == Kind::PackRow).store(wave, std::memory_order_release);
  }
  // Waits until the tile's row or column is packed in this wave.
  void wait(const Item& tile, bool row, std::uint32_t wave) {
    const std::atomic<std::uint32_t>& ready = flag(tile, row);
    for (int spins = 0; ready.load(std::memory_order_acquire) != wave; ++spins)
      if (spins > 200) std::this_thread::yield();
  }

 private:
  std::atomic<std::uint32_t>& flag(const Item& item, bool row) {
    return row ? row_ready_[item.product * rows_ + item.row]
               : column_ready_[item.product * columns_ + item.column];
  }

  std::int64_t rows_ = 0, columns_ = 0;
  std::vector<Item> items_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> row_ready_, column_ready_;
  std::atomic<std::int64_t> next_[2] = {0, 0};
  std::uint32_t finished_ = 0;
};

}  // namespace aloft::cpu
