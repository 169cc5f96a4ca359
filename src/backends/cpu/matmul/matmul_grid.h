// C[m, n] = A[m, k] * B[k, n] (+ bias[n]), batched: single-threaded products of strips (32 columns
// of C past a band of rows) or of tiles, shared out by the OpenMP pool. Operands are packed by the
// threads into the caller's scratch. bf16 and f16 run on the matrix units where the processor has
// them (amx_strip.h; tiles, amx.h, where a product adds to C), bf16 in strips of dot products where
// it has those alone (bf16_strip.h), all else in strips of f32 (f32_strip.h). Sums are f32, rounded
// once to C's type.
//
// Same inputs, same bits, on any number of threads, of whatever bound. NaN and infinity propagate.
// Where bf16 is not computed in f32, its denormals count as zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "types/dtype.h"
#include "types/product_form.h"

namespace aloft::cpu {

struct MatmulSpec {
  // Bounds; at run time m, k or the batch may be less. k_varies: k may be less than its bound.
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool k_varies = false;
  DType a = DType::F32, b = DType::F32, c = DType::F32;  // each F32, BF16 or F16
  // A stored [k, m], B stored [n, k], dense, row-major at the bounds.
  bool transpose_a = false, transpose_b = false;
  // Where each product of the batch starts, in elements; empty: one after another.
  std::vector<std::int64_t> a_offset, b_offset;
  std::optional<DType> bias;
  bool accumulate = false;  // add to C
  // Other than plain for f32 x f32 only; where there are no units for it, it is plain all the same.
  ProductForm form = ProductForm::Plain;
  int threads = 1;
};

struct MatmulPointers {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* c = nullptr;
  void* scratch = nullptr;  // scratch_bytes(), 64-byte aligned
};

// What of the bounds is there in this run.
struct MatmulActual {
  std::int64_t batch = 1, m = 0, k = 0;
};

class MatmulGrid {
 public:
  explicit MatmulGrid(const MatmulSpec& spec);
  ~MatmulGrid();
  std::size_t scratch_bytes() const;
  // Rows past actual.m inside the bound may be written with anything.
  void run(const MatmulPointers& pointers, const MatmulActual& actual) const;
  // "amx bf16", "amx f16 by halves", "amx f32 by bf16x6", "our own bf16 vectors" ...
  const char* engine() const;
  // The engine, the cut and what of the operands is copied, and why: for people.
  std::string how() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace aloft::cpu
