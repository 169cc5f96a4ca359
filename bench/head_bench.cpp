// The head of GPT-2 124M with 1,024 tokens, loss and gradients in one sweep, beside the three
// products that it contains, each alone at the library's best layout.
//
//   head_bench [ROUNDS]        (OMP_NUM_THREADS sets the threads)
#include <cstdio>
#include <cstdlib>

#include "backends/cpu/measure.h"
#include "ops/cross_entropy.h"
#include "timed_kernel.h"

namespace {

using namespace aloft;

void measure(DType type, int rounds) {
  constexpr std::int64_t kRows = 1024, kClasses = 50304, kWidth = 768;
  const TensorType x{type, {kRows, kWidth}}, weight{type, {kClasses, kWidth}},
      scalar{DType::F32, {}};
  bench::TimedKernel sweep({"linear_cross_entropy_sweep",
                            to_attrs(CrossEntropyAttrs{}),
                            {x, weight, {DType::I32, {kRows}}, scalar},
                            {scalar, x, weight}});
  // Logits of a model that is being trained: far-apart ones would make denormals.
  sweep.fill(1, 0.05);
  sweep.set(2, 17);
  sweep.set(3, 1);
  double library = 0;
  for (const cpu::MatmulProblem& p : {cpu::MatmulProblem{1, kRows, kClasses, kWidth, type},
                                      {1, kRows, kWidth, kClasses, type},
                                      {1, kClasses, kWidth, kRows, type}})
    library += cpu::best_layout_ms(p, 3);
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) times.push_back(sweep.run());
  const double flops = 6.0 * static_cast<double>(kRows * kClasses * kWidth);
  std::printf(
      "%-5s sweep %8.1f ms %7.0f GFLOP/s   its products alone %8.1f ms: %.2f   scratch %.0f "
      "MiB\n",
      std::string(name_of(type)).c_str(), bench::median(times), flops / bench::median(times) / 1e6,
      library, library / bench::median(times), sweep.scratch_mib());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  for (DType type : {DType::BF16, DType::F32, DType::F16}) measure(type, rounds);
}
