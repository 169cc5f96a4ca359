// Products of bf16, or of bf16 planes of f16 or f32 (planes.h), on the matrix tiles, 32 columns of
// C at a time, with everything else that a product needs done in their shadow: a tile instruction
// keeps the matrix unit busy for 16 cycles and the rest of the processor for none, so between two
// steps along K a strip also packs a piece of the panel that comes next and rounds and writes two
// rows of the block before. Results go past the
// caches (a line at a time, whole): C is read much later, and fetching its lines first would cost
// more than writing them.
//
// Measured on two threads, GFLOP/s of 1024 x 3072 x 768 with its packing and its writes: 2,010 with
// tiles that are packed before and written behind, 3,000 and more this way (docs/decisions/0004).
#pragma once

#include <cstdint>

#include "backends/cpu/amx/amx.h"
#include "types/dtype.h"

namespace aloft::cpu {

// 32 columns of B[k, n] where they lie: B[i][j] is data[i * ld + j], or data[j * ld + i] if
// transposed. k is a multiple of kAmxDepth.
struct AmxPanelSource {
  const void* data = nullptr;
  std::int64_t ld = 0, k = 0;
  bool transposed = false;
  DType type = DType::BF16;  // F16: packed in two planes, F32: in two or three
  int planes = 1;
  std::int64_t plane = 0;  // distance of two planes in the panel, in elements
};

// C[m, 32] = A[m, k] B[k, 32] (+ bias): m and k multiples of 32. `turned`: C is stored the other
// way round, [32, m], without a bias.
struct AmxStrip {
  std::int64_t m = 0, k = 0;
  const std::uint16_t* a = nullptr;
  std::int64_t lda = 0;
  const std::uint16_t* b = nullptr;  // packed, see amx.h
  int planes = 1, products = 1;      // as in AmxTile
  std::int64_t a_plane = 0, b_plane = 0;
  const float* partial_in = nullptr;  // f32 sums of earlier parts of K, or null
  float* partial_out = nullptr;       // not null: write f32 sums there and leave C alone
  std::int64_t ldp = 0;               // row stride of both
  void* c = nullptr;
  DType c_type = DType::BF16;  // BF16, F16 or F32
  std::int64_t ldc = 0;
  bool turned = false;
  const float* bias = nullptr;  // 32 values, or null
  // A panel to be packed meanwhile, and where to.
  const AmxPanelSource* next = nullptr;
  std::uint16_t* next_panel = nullptr;
};

// The strips of one thread. What run() has left to write is written by the run() after it, or by
// finish(), behind which other threads may read C.
class AmxStrips {
 public:
  void run(const AmxStrip& strip);
  void finish();
  static void pack(const AmxPanelSource& source, std::uint16_t* panel);

 private:
  struct Block {  // 32 x 32 sums that wait in sums_
    const float* sums = nullptr;
    void* c = nullptr;
    std::int64_t ldc = 0, row = 32;  // 32: nothing waits
    std::int64_t due = 0;            // rows that should be written by now, if turned
    const float* bias = nullptr;
    DType type = DType::BF16;
    bool turned = false;
    bool lines = false;  // every row of it is whole cache lines
  };
  template <class Units, const auto& kTerms, bool kSums>
  void run_blocks(const AmxStrip& strip);
  template <class Rows, class Columns, const auto& kTerms, bool kSums>
  void run_packing(const AmxStrip& strip);
  template <class Split, const auto& kTerms>
  void run_planes(const AmxStrip& strip);
  void keep(const AmxStrip& strip, std::int64_t row);
  static void write_rows(Block& block, std::int64_t rows);
  static void write_turned(Block& block);

  alignas(64) float sums_[2][32 * 32];
  Block waiting_;
  int turn_ = 0;
};

}  // namespace aloft::cpu
