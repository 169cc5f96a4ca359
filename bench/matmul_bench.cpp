// Our matrix products, packing included, beside the library's own at its best layout, packing not
// counted, in alternation: medians, and the share of the library's rate three
// ways (the last, of the best runs, is the one to read on a busy machine).
//
//   matmul_bench [--rounds N] [--only TEXT]     (OMP_NUM_THREADS sets the threads)
//
// Shapes are those of a GPT-2 124M step with 1,024 tokens: forward, dX, dW, the head in chunks of
// 256 rows, attention's products (plain, as a model without the fused kernel would run them), and
// those of Muon.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/matmul/matmul_grid.h"
#include "backends/cpu/measure.h"
#include "backends/cpu/memory.h"

namespace {

using aloft::DType;
using namespace aloft::cpu;

struct Row {
  const char* name;
  std::int64_t batch, m, n, k;
  bool ta, tb;
  bool itself = false;  // one matrix is both operands
};
constexpr Row kRows[] = {
    {"fwd qkv", 1, 1024, 2304, 768, false, true},
    {"fwd out", 1, 1024, 768, 768, false, true},
    {"fwd up", 1, 1024, 3072, 768, false, true},
    {"fwd down", 1, 1024, 768, 3072, false, true},
    {"dX qkv", 1, 1024, 768, 2304, false, false},
    {"dX out", 1, 1024, 768, 768, false, false},
    {"dX up", 1, 1024, 768, 3072, false, false},
    {"dX down", 1, 1024, 3072, 768, false, false},
    {"dW qkv", 1, 2304, 768, 1024, true, false},
    {"dW out", 1, 768, 768, 1024, true, false},
    {"dW up", 1, 3072, 768, 1024, true, false},
    {"dW down", 1, 768, 3072, 1024, true, false},
    {"head 256 rows", 1, 256, 50304, 768, false, true},
    {"dX head 256 rows", 1, 256, 768, 50304, false, false},
    {"dW head 256 rows", 1, 50304, 768, 256, true, false},
    {"head 1024 rows", 1, 1024, 50304, 768, false, true},
    {"attention q k", 48, 256, 256, 64, false, true},
    {"attention p v", 48, 256, 64, 256, false, false},
    {"muon square", 1, 768, 768, 768, false, false},
    {"muon x x' of 768", 1, 768, 768, 768, false, true, true},
    {"muon x x' of 3072", 1, 768, 768, 3072, false, true, true},
    {"muon x' x of 3072", 1, 768, 768, 3072, true, false, true},
    {"muon m x of 3072", 1, 768, 3072, 768, false, false},
    {"muon x m of 3072", 1, 3072, 768, 768, false, false},
    {"square 1024", 1, 1024, 1024, 1024, false, false},
    {"small 768x128x512", 1, 768, 128, 512, false, true},
    {"small 768x512x128", 1, 768, 512, 128, false, true},
    {"small dW 128x128", 1, 128, 128, 768, true, false},
};

double now_ms() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(t).count();
}

template <class F>
double timed(const F& f) {
  const double start = now_ms();
  f();
  return now_ms() - start;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void fill(void* p, std::int64_t n, DType type) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = static_cast<float>(i * 2654435761u % 1024) / 1024.0f - 0.5f;
    std::uint32_t bits;
    std::memcpy(&bits, &v, 4);
    if (type == DType::F32)
      static_cast<float*>(p)[i] = v;
    else  // bf16 bits; as f16 they are other values, equally ordinary
      static_cast<std::uint16_t*>(p)[i] = static_cast<std::uint16_t>(bits >> 16 & 0xbfff);
  }
}

struct Ours {
  MatmulSpec spec;
  std::shared_ptr<void> a, b, c, scratch;
  std::unique_ptr<MatmulGrid> grid;

  Ours(const Row& r, DType type) {
    spec.batch = r.batch, spec.m = r.m, spec.n = r.n, spec.k = r.k;
    spec.a = spec.b = spec.c = type;
    spec.transpose_a = r.ta, spec.transpose_b = r.tb;
    spec.threads = omp_get_max_threads();
    grid = std::make_unique<MatmulGrid>(spec);
    auto make = [&](std::int64_t n) {
      auto p = allocate_aligned(n * size_of(type) + 64);
      fill(p.get(), n, type);
      return p;
    };
    a = make(r.batch * r.m * r.k);
    b = r.itself ? a : make(r.batch * r.n * r.k);
    c = make(r.batch * r.m * r.n);
    scratch = allocate_aligned(grid->scratch_bytes() + 64);
  }
  void run() {
    grid->run({a.get(), b.get(), nullptr, c.get(), scratch.get()}, {spec.batch, spec.m, spec.k});
  }
};

void bench(const Row& row, DType type, int rounds) {
  Ours ours(row, type);
  MatmulProblem problem{row.batch, row.m, row.n, row.k, type, row.ta, row.tb};
  if (type == DType::F16) problem.type = DType::F32;  // the library has no f16 products
  std::vector<LibraryMatmul> library;
  for (const auto layout :
       {LibraryLayout::Plain, LibraryLayout::PackedB, LibraryLayout::PackedBoth})
    library.emplace_back(problem, layout);
  std::vector<std::vector<double>> theirs(library.size());
  std::vector<double> own, ratio;
  ours.run();
  for (LibraryMatmul& l : library) l.run();
  for (int round = 0; round < rounds; ++round) {
    double best = 1e300;
    own.push_back(timed([&] { ours.run(); }));
    for (std::size_t i = 0; i < library.size(); ++i) {
      theirs[i].push_back(timed([&] { library[i].run(); }));
      best = std::min(best, theirs[i].back());
    }
    ratio.push_back(best / own.back());
  }
  const double flops = problem.flops() / 1e6;
  double best = 0;
  std::printf("%-5s %-18s %7.0f |", std::string(name_of(type)).c_str(), row.name,
              flops / median(own));
  for (const auto& t : theirs) {
    std::printf(" %7.0f", flops / median(t));
    best = std::max(best, flops / median(t));
  }
  double least = 1e300;
  for (const auto& t : theirs) least = std::min(least, *std::min_element(t.begin(), t.end()));
  const double own_least = *std::min_element(own.begin(), own.end());
  std::printf(" | %5.2f %5.2f %5.2f (%.0f) | %s, %.1f MiB\n", flops / median(own) / best,
              median(ratio), least / own_least, flops / own_least, ours.grid->engine(),
              static_cast<double>(ours.grid->scratch_bytes()) / 1048576.0);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 11;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--rounds") rounds = std::atoi(argv[i + 1]);
    if (std::string(argv[i]) == "--only") only = argv[i + 1];
  }
  std::printf("GFLOP/s on %d threads\n", omp_get_max_threads());
  std::printf(
      "%-5s %-18s %7s | %7s %7s %7s | share: of medians, of rounds, of bests | engine, scratch\n",
      "type", "product", "ours", "plain", "packedB", "packed");
  for (const DType type : {DType::BF16, DType::F32, DType::F16})
    for (const Row& row : kRows) {
      const std::string name = std::string(name_of(type)) + " " + row.name;
      if (name.find(only) != std::string::npos) bench(row, type, rounds);
    }
  return 0;
}
