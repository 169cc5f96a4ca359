// What this machine can do, measured: the library's matrix product at its best layout and with its
// own threads, and the memory's stream. These are the yardsticks that benches and `aloft bench
// step` hold our kernels against, so nothing of ours is in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "types/dtype.h"

namespace aloft::cpu {

struct MatmulProblem {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  DType type = DType::F32;  // of the operands and the result: F32 or BF16
  bool transpose_a = false, transpose_b = false;

  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
};

// How the operands of a library product lie in memory.
enum class LibraryLayout {
  Plain,      // row-major, transposed operands read as they are
  PackedB,    // B as the library likes it, packing not counted
  PackedBoth  // both operands so
};

// What the operands of a library product hold. Numbers that toggle few bits draw little power, and
// matrix units then run at a higher clock: zeros give a limit from above that no training reaches,
// normal numbers the limit for a product of what training multiplies.
enum class Operands { Zeros, Normal };

// One product in oneDNN on its own memory and threads, as a user of the library would run it.
class LibraryMatmul {
 public:
  // EnvironmentError E0411 where oneDNN refuses (f16 on a processor).
  LibraryMatmul(const MatmulProblem& problem, LibraryLayout layout,
                Operands operands = Operands::Zeros);
  ~LibraryMatmul();
  LibraryMatmul(LibraryMatmul&&) noexcept;
  LibraryMatmul& operator=(LibraryMatmul&&) noexcept;
  void run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// How long a product takes alone at its best layout, whichever way the problem's own operands lie:
// the least of the medians of all rounds that were measured. What the library has no product for is
// measured as what it can be computed in: BF16 as F32 where the processor has no bf16 products, F16
// as F32 or as three bf16 products (of the operands' halves), whichever is faster.
class ProductAlone {
 public:
  explicit ProductAlone(const MatmulProblem& problem);
  // One round: every layout, `runs` times in a row. E0411 where oneDNN refuses.
  void measure(int runs = 3);
  // One round of times that `median_ms` gives.
  using Timing = std::function<double(const MatmulProblem&, LibraryLayout, Operands)>;
  void measure(const Timing& median_ms);

  const MatmulProblem& problem() const { return problem_; }
  double zeros_ms() const { return zeros_ms_; }    // what the best layout is chosen by
  double normal_ms() const { return normal_ms_; }  // the same on normal numbers

 private:
  struct Way {
    MatmulProblem problem;
    LibraryLayout layout = LibraryLayout::Plain;
    double products = 1;  // of the library for one of the problem
  };
  MatmulProblem problem_;
  std::vector<Way> ways_;
  std::ptrdiff_t best_ = 0;
  double zeros_ms_ = std::numeric_limits<double>::infinity();
  double normal_ms_ = std::numeric_limits<double>::infinity();
};
// zeros_ms() after one round.
double best_layout_ms(const MatmulProblem& problem, int runs = 9);

struct MatmulRates {
  double f32_gflops = 0, bf16_gflops = 0;
  double spread = 0;  // of the worse type: spread_of() its rounds
};
// The library's rates on a product of 512 x 1024 x 512 normal numbers, the types in turns: a tenth
// of a second, and steady, because the decision whether low precision pays hangs on their ratio.
// Each rate is that of the least time, which a busy machine does not lower. Ends early where rounds
// agree, and on a machine so busy that they would take half a second.
MatmulRates measure_matmul_rates(int rounds = 12);

// By what part the third of repeated measurements, from the least on, lies above the least: little
// where several reached what the machine can do. Of fewer, the last.
double spread_of(std::span<const double> ms);
// Above this somebody else had the machine all the while: it may do better. The bar of `auto`
// precision leaves as much room.
inline constexpr double kQuietSpread = 0.05;

// Bytes a second, in GB, that an update in place moves (two arrays read, one written back) over
// arrays far larger than the caches, on all threads of the pool.
double measure_stream_rate(int rounds = 5);

// The same of one array that is read, as a model's weights are for a token.
double measure_read_rate(int rounds = 5);

// The same of an update of three arrays in place by a fourth (four read, three written back), as an
// optimizer's sweep moves them.
double measure_update_rate(int rounds = 5);

// Of the library of products: "2.6.3".
std::string library_version();

}  // namespace aloft::cpu
