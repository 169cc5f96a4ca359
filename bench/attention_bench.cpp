// Attention from a packed projection, forward and backward, beside the plain batched products that
// it contains, each alone at the library's best layout: milliseconds, GFLOP/s over the pairs that a
// causal mask leaves, and the share of the library's rate (which computes all pairs).
//
//   attention_bench [ROUNDS [TYPE [PART OF A NAME]]]        (OMP_NUM_THREADS sets the threads)
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backends/cpu/measure.h"
#include "ops/attention_qkv.h"
#include "timed_kernel.h"

namespace {

using namespace aloft;

struct Row {
  const char* name;
  std::int64_t batch, length, heads, width;
};
constexpr Row kRows[] = {{"gpt2-124m B 4 T 256", 4, 256, 12, 64},
                         {"gpt2-124m B 1 T 1024", 1, 1024, 12, 64},
                         {"B 1 T 4096", 1, 4096, 12, 64},
                         {"gpt-cpp B 8 T 256", 8, 256, 8, 32},
                         {"char B 12 T 64", 12, 64, 4, 32}};

void measure(const Row& r, DType type, int rounds) {
  const TensorType qkv{type, {r.batch, r.length, 3 * r.heads * r.width}},
      o{type, {r.batch, r.length, r.heads * r.width}},
      lse{DType::F32, {r.batch, r.heads, r.length}};
  const Attrs attrs = to_attrs(AttentionQkvAttrs{.heads = r.heads});
  bench::TimedKernel forward({"attention_qkv", attrs, {qkv}, {o, lse}});
  bench::TimedKernel backward({"attention_qkv_grad", attrs, {qkv, o, lse, o}, {qkv}});
  std::vector<double> fwd, bwd;
  for (int i = 0; i < rounds; ++i) {
    fwd.push_back(forward.run());
    bwd.push_back(backward.run());
  }
  const double flops = 2.0 * static_cast<double>(r.batch * r.heads * r.length * r.length * r.width);
  const double left = 0.5 * (1 + 1.0 / static_cast<double>(r.length));
  double library = 0;
  if (r.length <= 1024)
    library = cpu::best_layout_ms({r.batch * r.heads, r.length, r.length, r.width, type}, 5);
  std::printf("%-5s %-22s forward %8.3f ms %7.0f GFLOP/s   backward %8.3f ms %7.0f GFLOP/s",
              std::string(name_of(type)).c_str(), r.name, bench::median(fwd),
              2 * flops * left / bench::median(fwd) / 1e6, bench::median(bwd),
              5 * flops * left / bench::median(bwd) / 1e6);
  if (library > 0)
    std::printf("   q k^T alone %8.3f ms: forward %.2f, backward %.2f of 2 and 5 of it", library,
                2 * library / bench::median(fwd), 5 * library / bench::median(bwd));
  std::printf("   scratch %.1f and %.1f MiB\n", forward.scratch_mib(), backward.scratch_mib());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  for (DType type : {DType::BF16, DType::F16, DType::F32})
    if (argc < 3 || argv[2] == name_of(type))
      for (const Row& row : kRows)
        if (argc < 4 || std::strstr(row.name, argv[3])) measure(row, type, rounds);
}
