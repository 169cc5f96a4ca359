// The engine of every element-wise kernel: broadcasts, widens tiles, calls the op's function on
// them, rounds the result into place. An op supplies a function on f32 tiles and one in double.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/elements/operands.h"
#include "backends/cpu/rows/loop_part.h"
#include "base/error.h"
#include "runtime/kernel.h"
#include "scalar/float_formats.h"

namespace aloft::cpu {

// out[j] = f(in[0][j], in[1][j], ...; p) for j in [0, n). p: the op's numbers (a slope, bounds).
template <class T>
using TileOf = void (*)(const T* const* in, T* out, std::int64_t n, const double* p);
using TileF32 = TileOf<float>;
using TileF64 = TileOf<double>;
using TileI64 = TileOf<std::int64_t>;

// The same function on f32 tiles, and on low types where they lie: each vector is widened, computed
// and rounded on its way, with the bits that tiles would give.
struct FloatTiles {
  TileF32 f32 = nullptr;
  TileOf<scalar::Bf16> bf16 = nullptr;
  TileOf<scalar::F16> f16 = nullptr;

  bool has_low(DType t) const {
    return (t == DType::BF16 && bf16 != nullptr) || (t == DType::F16 && f16 != nullptr);
  }
};
// Of a template of tile functions.
#define FLOAT_TILES(tile) \
  FloatTiles { tile<float>, tile<scalar::Bf16>, tile<scalar::F16> }

// The same of one operand and a random word for each element.
using DrawnF32 = void (*)(const float* x, const std::uint32_t* words, float* out, std::int64_t n,
                          const double* p);
using DrawnF64 = void (*)(const double* x, const std::uint32_t* words, double* out, std::int64_t n,
                          const double* p);

struct ElementwiseCode {
  TileF32 f32 = nullptr;  // floats up to f32, bool and 8-bit integers
  TileF64 f64 = nullptr;  // f64, and i32 and i64 where there is no function of integers
  std::int64_t cost = 1;  // of one element, in units of an addition
  std::array<double, 4> numbers{};
  // Of an op that draws, instead of f32 and f64: its operands are x and the random state, and
  // element i of the flattened result has word i of the stream that `key` names.
  DrawnF32 drawn_f32 = nullptr;
  DrawnF64 drawn_f64 = nullptr;
  std::int64_t key = 0;
  // Where all operands and the result have one low type and no operand is repeated, this may take
  // f32's place.
  FloatTiles low;
  // Where all operands are integers, and the result is an integer or a bool.
  TileI64 i64 = nullptr;

  bool draws() const { return drawn_f32 != nullptr; }
};

// Element types of which a float holds every value.
constexpr bool fits_f32(DType t) {
  return has_tiles(t) || t == DType::Bool || t == DType::U8 || t == DType::I8;
}

// A prepared kernel that is nothing but a function of elements: what fused loops are made of.
class TileOp : public CpuLoopPart {
 public:
  const TileOp* tile_op() const override { return this; }
  virtual ElementwiseCode tile_code() const = 0;
};

// out = in[0]: casts and copies are this, where tiles are opened and closed by somebody else.
ElementwiseCode copy_code();

// output 0 = code(inputs, broadcast). Integers computed from integers wrap around; those that come
// from floats saturate, and NaN becomes 0.
std::unique_ptr<Prepared> prepare_elementwise(const CallSpec& call, const ElementwiseCode& code);

// A family's kernels come from a table whose rows have a `name`, "cpu.OP": a kernel a row.
template <class Rows>
std::vector<Kernel> elementwise_kernels(const Rows& rows,
                                        std::unique_ptr<Prepared> (*prepare)(const CallSpec&)) {
  std::vector<Kernel> all;
  for (const auto& row : rows)
    all.push_back(
        {row.name, std::string_view(row.name).substr(4), always, prepare, same_type_pairs});
  return all;
}

// The row of a call's op.
template <class Rows>
const auto& row_of(const Rows& rows, const CallSpec& call) {
  const std::string name = "cpu." + call.op.str();
  for (const auto& row : rows)
    if (row.name == name) return row;
  throw InternalError("a family of kernels has no row for " + name);
}

}  // namespace aloft::cpu
