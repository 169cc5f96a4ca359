// numpy broadcasting of a call's inputs to its first output, resolved when the kernel is prepared:
// a run asks for any stretch of the output, flattened, and gets each input's matching elements as
// one dense run, in place where they lie densely, else copied into a small buffer.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/cpu/vectors/tiles.h"
#include "runtime/kernel.h"

namespace aloft::cpu {

inline constexpr int kMaxOperands = 12;

class Operands {
 public:
  // Inputs [first, first + count) of the call, against output 0.
  explicit Operands(const CallSpec& call, int first = 0, int count = -1);

  std::int64_t numel(const RunArgs& args) const { return numel_.at(args.symbols); }
  int count() const { return static_cast<int>(inputs_.size()); }
  // Elements that a tile beginning at `begin` may have so that wide rows are read in place.
  std::int64_t tile_at(std::int64_t begin, std::int64_t end) const;
  // Input i covers the whole output, element by element.
  bool is_dense(int i) const { return inputs_[i].dense; }

 private:
  friend class Reader;
  struct Input {
    DType dtype;
    bool dense = false, single = false;
    std::vector<std::int64_t> strides;  // of each collapsed dimension, in elements; 0: repeated
  };
  std::vector<std::int64_t> extents_;  // collapsed output dimensions; the outermost is not used
  std::int64_t row_ = 1;               // the innermost of them
  std::vector<Input> inputs_;
  Extent numel_;
  int first_ = 0;
};

// One chunk's view of the operands; lives on the stack of the thread that works on the chunk.
class Reader {
 public:
  Reader(const Operands& operands, const RunArgs& args) : o_(operands), args_(args) {}

  // Elements [begin, begin + n) of the flattened output, n <= kTile, as input i has them.
  const void* raw(int i, std::int64_t begin, std::int64_t n);
  const float* as_f32(int i, std::int64_t begin, std::int64_t n);
  const double* as_f64(int i, std::int64_t begin, std::int64_t n);
  const std::int64_t* as_i64(int i, std::int64_t begin, std::int64_t n);

 private:
  void gather(int i, std::int64_t begin, std::int64_t n);

  const Operands& o_;
  const RunArgs& args_;
  std::array<std::int64_t, kMaxOperands> filled_{};  // elements of a repeated scalar in the buffer
  alignas(64) std::uint64_t raw_[kMaxOperands][kTile];
  alignas(64) std::uint64_t wide_[kMaxOperands][kTile];
};

// The (input, output 0) pairs that may share a buffer: same element type and shape.
std::vector<std::pair<int, int>> same_type_pairs(const CallSpec& call);

}  // namespace aloft::cpu
