// The engine of reductions: any set of axes of a dense array, split into pieces whose partial
// results are kept in double and combined in order. An op supplies how a run of elements folds into
// one number, how one run folds into another of equal length, and how numbers combine.
#pragma once

#include <memory>
#include <optional>

#include "backends/cpu/rows/loop_part.h"

namespace aloft::cpu {

template <class T>
struct Fold {
  double (*row)(const T* x, std::int64_t n);          // n <= kTile
  void (*rows)(T* into, const T* x, std::int64_t n);  // into[i] = combine(into[i], x[i])
};

struct ReductionCode {
  Fold<float> f32;   // f32, bf16, f16; also 8-bit integers and bool; null: these in double too
  Fold<double> f64;  // f64 and wider integers
  double (*combine)(double, double);
  double start = 0;
  // The result from the combined value and the number of elements that went in.
  double (*finish)(double value, double count);
  // Applied to each tile before folding, where set (|x|, x^2).
  void (*before_f32)(const float* x, float* y, std::int64_t n) = nullptr;
  void (*before_f64)(const double* x, double* y, std::int64_t n) = nullptr;
};

// Rows folded in f32 before the sum moves to double.
inline constexpr std::int64_t kRowsInF32 = 128;

// How a prepared reduction of leading axes goes about it, for a fused loop that repeats it to the
// bit: its rows are cut into pieces(rows), each folded kRowsInF32 rows at a time.
struct ColumnFold {
  void (*rows)(float* into, const float* x, std::int64_t n);
  std::int64_t columns, most_pieces;
  std::int64_t pieces(std::int64_t rows) const;
};
class ColumnReduction : public CpuLoopPart {
 public:
  const ColumnReduction* column_reduction() const override { return this; }
  // Nullopt where it is another reduction, or works in double.
  virtual std::optional<ColumnFold> column_fold() const = 0;
};

// `axes` as in ReduceAttrs: empty means all.
std::unique_ptr<Prepared> prepare_reduction(const CallSpec& call, const Ints& axes,
                                            const ReductionCode& code);

}  // namespace aloft::cpu
