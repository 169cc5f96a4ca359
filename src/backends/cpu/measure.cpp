#include "backends/cpu/measure.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/isa.h"
#include "backends/cpu/memory.h"
#include "backends/cpu/onednn.h"
#include "scalar/median.h"

namespace aloft::cpu {
namespace {

using dnnl::memory;
using scalar::upper_median;

// An fp16 value is the sum of two bf16 values; a product of such sums is three products of bf16.
constexpr double kHalfProducts = 3;

double milliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

template <class F>
double timed(const F& f) {
  const double start = milliseconds();
  f();
  return milliseconds() - start;
}

// Of so many rounds, behind one that does not count.
template <class F>
double median_of_rounds(int rounds, const F& f) {
  f();
  std::vector<double> times;
  for (int round = 0; round < std::max(1, rounds); ++round) times.push_back(timed(f));
  return upper_median(std::move(times));
}

// A product without a batch is described in two dimensions: the library's kernels for those are
// other, faster ones.
memory::desc operand(const MatmulProblem& p, std::int64_t rows, std::int64_t cols, bool transposed,
                     bool packed) {
  memory::dims dims = {rows, cols};
  memory::dims strides = transposed ? memory::dims{1, rows} : memory::dims{cols, 1};
  if (p.batch != 1) {
    dims.insert(dims.begin(), p.batch);
    strides.insert(strides.begin(), rows * cols);
  }
  if (packed) return {dims, onednn_type(p.type), memory::format_tag::any};
  return {dims, onednn_type(p.type), strides};
}

dnnl::matmul::primitive_desc describe(const memory::desc& a, const memory::desc& b,
                                      const memory::desc& c) {
#if DNNL_VERSION_MAJOR >= 3
  return {onednn_engine(), a, b, c};
#else
  return {dnnl::matmul::desc(a, b, c), onednn_engine()};
#endif
}

void fill(const memory& m, Operands operands) {
  const auto bytes = m.get_desc().get_size();
  if (operands == Operands::Zeros) {
    std::memset(m.get_data_handle(), 0, bytes);
    return;
  }
  // A few thousand different numbers, repeated: caches do not look into what they hold.
  std::mt19937 words(1);
  std::normal_distribution<float> normal;
  std::array<float, 4099> numbers;
  for (float& x : numbers) x = normal(words);
  if (m.get_desc().data_type() == memory::data_type::f32) {
    auto* to = static_cast<float*>(m.get_data_handle());
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i) to[i] = numbers[i % numbers.size()];
  } else {
    auto* to = static_cast<std::uint16_t*>(m.get_data_handle());
    for (std::size_t i = 0; i < bytes / sizeof(std::uint16_t); ++i)
      to[i] = static_cast<std::uint16_t>(
          std::bit_cast<std::uint32_t>(numbers[i % numbers.size()]) >> 16);
  }
}

}  // namespace

struct LibraryMatmul::State {
  dnnl::stream stream{onednn_engine()};
  dnnl::matmul product;
  memory a, b, c;
};

LibraryMatmul::LibraryMatmul(const MatmulProblem& p, LibraryLayout layout, Operands operands)
    : state_(std::make_unique<State>()) {
  const bool any_a = layout == LibraryLayout::PackedBoth, any_b = layout != LibraryLayout::Plain;
  try {
    const auto pd =
        describe(operand(p, p.m, p.k, p.transpose_a, any_a),
                 operand(p, p.k, p.n, p.transpose_b, any_b), operand(p, p.m, p.n, false, false));
    State& s = *state_;
    s.product = dnnl::matmul(pd);
    s.a = memory(pd.src_desc(), onednn_engine());
    s.b = memory(pd.weights_desc(), onednn_engine());
    s.c = memory(pd.dst_desc(), onednn_engine());
    fill(s.a, operands);
    fill(s.b, operands);
    fill(s.c, Operands::Zeros);
  } catch (const dnnl::error& e) {
    throw_onednn("a matrix product", e);
  }
}

LibraryMatmul::~LibraryMatmul() = default;
LibraryMatmul::LibraryMatmul(LibraryMatmul&&) noexcept = default;
LibraryMatmul& LibraryMatmul::operator=(LibraryMatmul&&) noexcept = default;

void LibraryMatmul::run() {
  State& s = *state_;
  s.product.execute(s.stream, {{DNNL_ARG_SRC, s.a}, {DNNL_ARG_WEIGHTS, s.b}, {DNNL_ARG_DST, s.c}});
  s.stream.wait();
}

namespace {

// Runs of one layout follow each other: its operands are then as near as caches let them be, which
// is what a limit supposes.
double median_ms(const MatmulProblem& p, LibraryLayout layout, Operands operands, int runs) {
  LibraryMatmul product(p, layout, operands);
  return median_of_rounds(runs, [&] { product.run(); });
}

}  // namespace

ProductAlone::ProductAlone(const MatmulProblem& problem) : problem_(problem) {
  const bool bf16 = cpu_features().avx512_bf16;
  const auto add = [&](DType type, double products) {
    MatmulProblem p = problem;
    p.type = type;
    p.transpose_a = p.transpose_b = false;
    for (const auto layout :
         {LibraryLayout::Plain, LibraryLayout::PackedB, LibraryLayout::PackedBoth})
      ways_.push_back({p, layout, products});
    p.transpose_a = true;
    ways_.push_back({p, LibraryLayout::Plain, products});
    p.transpose_a = false, p.transpose_b = true;
    ways_.push_back({p, LibraryLayout::Plain, products});
  };
  if (problem.type == DType::BF16 && bf16) {
    add(DType::BF16, 1);
  } else {
    add(DType::F32, 1);
    if (problem.type == DType::F16 && bf16) add(DType::BF16, kHalfProducts);
  }
}

void ProductAlone::measure(int runs) {
  measure([runs](const MatmulProblem& p, LibraryLayout layout, Operands operands) {
    return median_ms(p, layout, operands, runs);
  });
}

void ProductAlone::measure(const Timing& median_ms) {
  for (const Way& way : ways_) {
    const double ms = way.products * median_ms(way.problem, way.layout, Operands::Zeros);
    if (ms <= zeros_ms_) zeros_ms_ = ms, best_ = &way - ways_.data();
  }
  const Way& way = ways_[best_];
  normal_ms_ =
      std::min(normal_ms_, way.products * median_ms(way.problem, way.layout, Operands::Normal));
}

double best_layout_ms(const MatmulProblem& p, int runs) {
  ProductAlone product(p);
  product.measure(runs);
  return product.zeros_ms();
}

double spread_of(std::span<const double> ms) {
  constexpr std::size_t kThird = 2;
  if (ms.empty()) return 0;
  std::vector<double> sorted(ms.begin(), ms.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[std::min(kThird, sorted.size() - 1)] / sorted.front() - 1;
}

MatmulRates measure_matmul_rates(int rounds) {
  // Both layouts of both types take turns: a neighbour that takes the machine for a while takes it
  // from all of them, and never makes one faster.
  constexpr int kLeastRounds = 4;
  constexpr double kMostMs = 500;
  struct Type {
    std::vector<LibraryMatmul> products;
    std::vector<double> ms;  // of the faster layout, by round
  };
  const bool bf16 = cpu_features().avx512_bf16;
  MatmulProblem p{1, 512, 1024, 512, DType::F32, false, true};
  std::vector<Type> types(bf16 ? 2 : 1);
  for (Type& t : types) {
    p.type = &t == types.data() ? DType::F32 : DType::BF16;
    for (const auto layout : {LibraryLayout::Plain, LibraryLayout::PackedB})
      t.products.emplace_back(p, layout, Operands::Normal).run();  // fetches and sets up
  }
  const double start = milliseconds();
  double spread = 0;
  for (int round = 1; round <= std::max(kLeastRounds, rounds); ++round) {
    spread = 0;
    for (Type& t : types) {
      double least = std::numeric_limits<double>::infinity();
      for (LibraryMatmul& product : t.products)
        least = std::min(least, timed([&] { product.run(); }));
      t.ms.push_back(least);
      spread = std::max(spread, spread_of(t.ms));
    }
    if (round < kLeastRounds) continue;
    const bool agree = 2 * round >= rounds && spread <= kQuietSpread;
    if (agree || milliseconds() - start > kMostMs) break;
  }
  const auto gflops = [&](const Type& t) {
    return p.flops() / *std::min_element(t.ms.begin(), t.ms.end()) / 1e6;
  };
  // What bf16 is computed in where there are no products of its own.
  return {gflops(types.front()), gflops(types.back()), spread};
}

double measure_stream_rate(int rounds) {
  constexpr std::int64_t kValues = std::int64_t{32} << 20;  // 128 MiB an array
  const auto x = allocate_aligned(kValues * sizeof(float));
  const auto y = allocate_aligned(kValues * sizeof(float));
  float* a = static_cast<float*>(x.get());
  const float* b = static_cast<float*>(y.get());
  auto sweep = [&](float* to, const float* from, float scale) {
#pragma omp parallel for simd schedule(static)
    for (std::int64_t i = 0; i < kValues; ++i) to[i] = to[i] * scale + from[i];
  };
  std::memset(x.get(), 0, kValues * sizeof(float));
  std::memset(y.get(), 0, kValues * sizeof(float));
  const double ms = median_of_rounds(rounds, [&] { sweep(a, b, 0.5f); });
  return 3.0 * sizeof(float) * kValues / ms / 1e6;
}

double measure_read_rate(int rounds) {
  constexpr std::int64_t kWords = std::int64_t{16} << 20;  // 128 MiB
  constexpr std::size_t kBytes = kWords * sizeof(std::uint64_t);
  const auto memory = allocate_aligned(kBytes);
  std::memset(memory.get(), 0, kBytes);
  const auto* words = static_cast<const std::uint64_t*>(memory.get());
  volatile std::uint64_t seen = 0;  // so that reading is not left out
  const auto sweep = [&] {
    std::uint64_t all = 0;
#pragma omp parallel for simd schedule(static) reduction(^ : all)
    for (std::int64_t i = 0; i < kWords; ++i) all ^= words[i];
    seen = all;
  };
  return kBytes / median_of_rounds(rounds, sweep) / 1e6;
}

double measure_update_rate(int rounds) {
  constexpr std::int64_t kValues = std::int64_t{16} << 20;  // 64 MiB an array
  constexpr std::size_t kBytes = kValues * sizeof(float);
  const auto g = allocate_aligned(kBytes), x = allocate_aligned(kBytes),
             y = allocate_aligned(kBytes), z = allocate_aligned(kBytes);
  const auto sweep = [&] {
    const float* gradient = static_cast<const float*>(g.get());
    float* weight = static_cast<float*>(x.get());
    float* first = static_cast<float*>(y.get());
    float* second = static_cast<float*>(z.get());
#pragma omp parallel for simd schedule(static)
    for (std::int64_t i = 0; i < kValues; ++i) {
      first[i] = 0.9f * first[i] + gradient[i];
      second[i] = 0.9f * second[i] + gradient[i] * gradient[i];
      weight[i] -= first[i] * second[i];
    }
  };
  for (const HostMemory* array : {&g, &x, &y, &z}) std::memset(array->get(), 0, kBytes);
  return 7.0 * kBytes / median_of_rounds(rounds, sweep) / 1e6;
}

std::string library_version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

}  // namespace aloft::cpu
