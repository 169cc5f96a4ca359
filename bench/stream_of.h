// What memory gives a sweep over arrays of which some are read, some written and some both: the
// time of loops that load and store the same arrays, side by side and on the same threads, and do
// nothing else. A share of it is a share of a limit, whatever the mix; one mix may be moved half as
// fast again as another.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace aloft::bench {

enum class Use { Read, Update, Write };  // Update: read and written back

// Of one tensor. What is below a cache line at its end is left out.
struct Array {
  void* data = nullptr;
  std::int64_t bytes = 0;
  Use use = Use::Read;
};

class StreamOf {
 public:
  // Those of a tensor are gone through together, a piece of each in turn.
  explicit StreamOf(std::vector<std::vector<Array>> tensors) : tensors_(std::move(tensors)) {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      std::int64_t longest = 0;
      for (const Array& a : tensors_[t]) {
        longest = std::max(longest, a.bytes);
        bytes_ += static_cast<double>(a.bytes) * (a.use == Use::Update ? 2 : 1);
      }
      const std::int64_t count = (longest + kPiece - 1) / kPiece;
      for (std::int64_t i = 0; i < count; ++i) pieces_.push_back({t, i, count});
    }
  }

  double bytes() const { return bytes_; }  // an array that is updated counts twice

  // Milliseconds of one run. What is updated stays as it is, what is written becomes 0.
  double run() const {
    const auto start = std::chrono::steady_clock::now();
    const auto count = static_cast<std::int64_t>(pieces_.size());
    std::uint64_t all = 0;
#pragma omp parallel reduction(^ : all)
    {
      Vector seen = {};
#pragma omp for schedule(static) nowait
      for (std::int64_t i = 0; i < count; ++i)
        for (const Array& a : tensors_[pieces_[i].tensor]) touch(a, pieces_[i], seen);
      all ^= seen[0] ^ seen[1];
    }
    read_ = all;
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    return took.count();
  }

 private:
  using Vector __attribute__((vector_size(16), may_alias)) = std::uint64_t;
  static constexpr std::int64_t kLine = 64;  // bytes
  // Of the array with most: shorter ones take longer to begin than to go through, and four arrays
  // in pieces of 4 KiB are a quarter slower than in pieces of one.
  static constexpr std::int64_t kPiece = 1024;
  struct Piece {
    std::size_t tensor;
    std::int64_t index, count;  // number `index` of its `count`
  };

  static void touch(const Array& a, const Piece& piece, Vector& seen) {
    const std::int64_t lines = a.bytes / kLine;
    auto* p = static_cast<Vector*>(a.data) + lines * piece.index / piece.count * kVectors;
    auto* end = static_cast<Vector*>(a.data) + lines * (piece.index + 1) / piece.count * kVectors;
    const Vector changed = {zero_, zero_};  // the compiler does not know
    switch (a.use) {
      case Use::Read:
        for (; p != end; p += kVectors) seen ^= (p[0] ^ p[1]) ^ (p[2] ^ p[3]);
        break;
      case Use::Update:
        for (; p != end; p += kVectors)
          p[0] ^= changed, p[1] ^= changed, p[2] ^= changed, p[3] ^= changed;
        break;
      case Use::Write:
        for (; p != end; p += kVectors) p[0] = p[1] = p[2] = p[3] = changed;
    }
  }
  static constexpr std::int64_t kVectors = kLine / sizeof(Vector);
  static inline volatile std::uint64_t zero_ = 0;

  std::vector<std::vector<Array>> tensors_;
  std::vector<Piece> pieces_;
  double bytes_ = 0;
  mutable volatile std::uint64_t read_ = 0;  // so that reading is not left out
};

}  // namespace aloft::bench
