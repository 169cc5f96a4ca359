// statistics: one read of a tensor. It is cut into pieces, each summed by itself
// (update/piece_statistics.h); then the pieces are put together in their order: the same bits on
// any number of threads and on every target.
#include "ops/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/update/piece_statistics.h"
#include "backends/cpu/vectors/tiles.h"
#include "scalar/float_formats.h"
#include "scalar/scaled_norm.h"

namespace aloft::cpu {
namespace {

constexpr std::int64_t kPiece = 32768;

// The number of an element's exponent among kExponents.
std::size_t exponent_of(float x) { return std::bit_cast<std::uint32_t>(x) >> 23 & 0xff; }
std::size_t exponent_of(scalar::Bf16 x) { return x.bits >> 7 & 0xff; }
std::size_t exponent_of(scalar::F16 x) { return exponent_of(scalar::f32_of(x)); }
std::size_t exponent_of(double x) {
  const auto of_f64 = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7ff);
  return static_cast<std::size_t>(std::clamp<std::int64_t>(of_f64 - 1023 + 127, 0, 255));
}

template <class T>
void count_exponents(const void* p, std::int64_t n, std::uint32_t* counts) {
  std::fill_n(counts, kExponents, 0u);
  for (std::int64_t i = 0; i < n; ++i) ++counts[exponent_of(static_cast<const T*>(p)[i])];
}

void count_exponents(DType type, const void* p, std::int64_t n, std::uint32_t* counts) {
  if (type == DType::F64) return count_exponents<double>(p, n, counts);
  if (type == DType::F32) return count_exponents<float>(p, n, counts);
  if (type == DType::BF16) return count_exponents<scalar::Bf16>(p, n, counts);
  count_exponents<scalar::F16>(p, n, counts);
}

bool is_masked(float x) { return x == -std::numeric_limits<float>::infinity(); }
bool is_masked(double x) { return x == -std::numeric_limits<double>::infinity(); }
bool is_masked(scalar::Bf16 x) { return x.bits == 0xff80; }
bool is_masked(scalar::F16 x) { return x.bits == 0xfc00; }

// Of those that no mask hides; how many are hidden.
template <class T>
std::int64_t add_seen(DType type, const void* p, std::int64_t n, StatisticsInLanes& to) {
  constexpr std::int64_t kBlock = 1024;
  T seen[kBlock];
  std::int64_t hidden = 0;
  for (std::int64_t from = 0; from < n; from += kBlock) {
    const T* x = static_cast<const T*>(p) + from;
    const std::int64_t count = std::min(kBlock, n - from);
    std::int64_t k = 0;
    for (std::int64_t i = 0; i < count; ++i)
      if (!is_masked(x[i])) seen[k++] = x[i];
    add_statistics(type, seen, k, to);
    hidden += count - k;
  }
  return hidden;
}

std::int64_t add_seen(DType type, const void* p, std::int64_t n, StatisticsInLanes& to) {
  if (type == DType::F64) return add_seen<double>(type, p, n, to);
  if (type == DType::F32) return add_seen<float>(type, p, n, to);
  if (type == DType::BF16) return add_seen<scalar::Bf16>(type, p, n, to);
  return add_seen<scalar::F16>(type, p, n, to);
}

class Statistics : public Prepared {
 public:
  explicit Statistics(const CallSpec& call)
      : type_(call.in[0].dtype),
        numel_(extent_of(call.in[0].shape.numel(), call)),
        most_pieces_(pieces_in(call.in[0].shape.max_numel())),
        has_exponents_(from_attrs<StatisticsAttrs>(call.attrs).exponents),
        is_masked_(from_attrs<StatisticsAttrs>(call.attrs).masked) {}

  std::size_t scratch_bytes() const override {
    const std::size_t counts = has_exponents_ ? kExponents * sizeof(std::uint32_t) : 0;
    return static_cast<std::size_t>(most_pieces_) * (sizeof(PieceStatistics) + counts);
  }

  void run(const RunArgs& args) const override {
    const std::int64_t n = numel_.at(args.symbols), pieces = pieces_in(n);
    auto* of = static_cast<PieceStatistics*>(args.scratch);
    auto* counts = reinterpret_cast<std::uint32_t*>(of + most_pieces_);
    for_each_chunk(pieces, [&](std::int64_t i) {
      const void* p = at(static_cast<const void*>(args.in[0]), i * kPiece, type_);
      const std::int64_t count = std::min(kPiece, n - i * kPiece);
      StatisticsInLanes lanes;
      const std::int64_t hidden = is_masked_ ? add_seen(type_, p, count, lanes) : 0;
      if (!is_masked_) add_statistics(type_, p, count, lanes);
      of[i] = together(lanes);
      of[i].negative_inf += hidden;
      if (has_exponents_) count_exponents(type_, p, count, counts + i * kCounts);
    });
    auto* out = static_cast<double*>(args.out[0]);
    PieceStatistics all;
    for (std::int64_t i = 0; i < pieces; ++i) add(all, of[i]);
    // Where it is masked, no other -inf was met.
    TensorStatistics numbers = numbers_of(all, is_masked_ ? n - all.negative_inf : n);
    numbers.elements = static_cast<double>(n);
    const double largest = std::max(std::abs(numbers.max), std::abs(numbers.min));
    if (type_ == DType::F64 && std::isfinite(largest)) {
      const std::span values(static_cast<const double*>(args.in[0]), static_cast<std::size_t>(n));
      if (scalar::needs_scaling(numbers.norm, largest))
        numbers.norm = scalar::scaled_norm(values, largest);
      if (!std::isfinite(all.sum))
        numbers.mean = scalar::scaled_mean(values, static_cast<double>(n - all.negative_inf));
    }
    numbers.put(out);
    if (!has_exponents_) return;
    double* totals = out + TensorStatistics::kNumbers;
    std::fill_n(totals, kExponents, 0.0);
    for (std::int64_t i = 0; i < pieces; ++i)
      for (std::int64_t e = 0; e < kCounts; ++e) totals[e] += counts[i * kCounts + e];
  }

 private:
  static constexpr auto kCounts = static_cast<std::int64_t>(kExponents);
  static std::int64_t pieces_in(std::int64_t n) { return (n + kPiece - 1) / kPiece; }

  DType type_;
  Extent numel_;
  std::int64_t most_pieces_;
  bool has_exponents_, is_masked_;
};

}  // namespace

std::vector<Kernel> statistics_kernels() {
  return {{"cpu.statistics", "statistics", always, prepare_as<Statistics>}};
}

}  // namespace aloft::cpu
