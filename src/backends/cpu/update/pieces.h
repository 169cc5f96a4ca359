// A list of tensors cut into chunks of about equal work: small tensors share a chunk, large ones
// are split. The cut depends on the sizes alone, that of a tensor into pieces on its own size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace aloft::cpu {

// Elements [begin, begin + count) of one tensor.
struct Piece {
  int tensor = 0;
  std::int64_t begin = 0, count = 0;
};

class Pieces {
 public:
  Pieces() = default;
  Pieces(std::span<const std::int64_t> sizes, std::int64_t chunk_elements) {
    std::int64_t room = 0;
    for (std::size_t t = 0; t < sizes.size(); ++t)
      for (std::int64_t begin = 0; begin < sizes[t]; begin += chunk_elements) {
        const std::int64_t count = std::min(chunk_elements, sizes[t] - begin);
        if (room < count) {
          first_.push_back(all_.size());
          room = chunk_elements;
        }
        all_.push_back({static_cast<int>(t), begin, count});
        room -= count;
      }
    first_.push_back(all_.size());
  }

  const std::vector<Piece>& all() const { return all_; }
  std::int64_t chunks() const { return static_cast<std::int64_t>(first_.size()) - 1; }
  // Index of the chunk's first piece; first(chunks()) is the number of pieces.
  std::size_t first(std::int64_t chunk) const { return first_[chunk]; }
  std::span<const Piece> of(std::int64_t chunk) const {
    return std::span(all_).subspan(first_[chunk], first_[chunk + 1] - first_[chunk]);
  }

 private:
  std::vector<Piece> all_;
  std::vector<std::size_t> first_ = {};
};

}  // namespace aloft::cpu
