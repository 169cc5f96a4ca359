// rotary: the angles' cosines and sines once a position, then every head of every token in one
// sweep. Angles are formed and reduced in double: at position 100,000 f32 has lost two digits.
#include "ops/rotary.h"

#include "types/rotary_scaling.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/rotary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "backends/cpu/integers.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/vectors/functions-inl.h"
#include "backends/cpu/vectors/sweeps-inl.h"
#include "backends/cpu/vectors/tiles.h"
#include "runtime/kernel.h"

#ifndef ALOFT_ROTARY_SWEEPS
#define ALOFT_ROTARY_SWEEPS
namespace aloft::cpu {
struct RotarySweeps {
  // Cosine and sine of n angles position * turns[i]; `turns` and the results have room for n
  // rounded up to a multiple of 16.
  void (*turn)(double position, const double* turns, float* cosine, float* sine, std::int64_t n);
  // `heads` heads of `width` elements, of which the first `turned` turn; the tables as fill_row
  // lays them out.
  using Sweep = void (*)(const void* x, const float* cosine, const float* sine, void* y,
                         std::int64_t turned, std::int64_t width, std::int64_t heads);
  Sweep halves, neighbours;
};
}  // namespace aloft::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// Angles are reduced to [-pi, pi] in double; there f32 is as fine as its results need.
void turn(double position, const double* turns, float* cosine, float* sine, std::int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto whole = hn::Set(d, 2 * std::numbers::pi), at_position = hn::Set(d, position);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto a = hn::Mul(at_position, hn::LoadU(d, turns + i));
    const auto reduced = hn::Sub(a, hn::Mul(whole, hn::Round(hn::Div(a, whole))));
    hn::StoreU(hn::DemoteTo(narrow, reduced), narrow, cosine + i);
  }
  for_vectors(n, [&](auto at) HWY_ATTR {
    const FloatV a = at(cosine);
    at.put(sin_of(a), sine);
    at.put(cos_of(a), cosine);
  });
}

// The rest of a head stays as it is.
template <class T>
void keep_rest(const T* from, T* to, std::int64_t turned, std::int64_t width) {
  if (turned < width && from != to)
    std::memcpy(to + turned, from + turned, static_cast<std::size_t>(width - turned) * sizeof(T));
}

// Pairs (i, i + turned / 2).
template <class T>
void halves(const void* x, const float* cosine, const float* sine, void* y, std::int64_t turned,
            std::int64_t width, std::int64_t heads) {
  const std::int64_t half = turned / 2;
  for (std::int64_t h = 0; h < heads; ++h) {
    const T *a = static_cast<const T*>(x) + h * width, *b = a + half;
    T *ya = static_cast<T*>(y) + h * width, *yb = ya + half;
    for_vectors(half, [&](auto at) HWY_ATTR {
      const FloatV p = at(a), q = at(b), c = at(cosine), s = at(sine);
      at.put(hn::NegMulAdd(q, s, hn::Mul(p, c)), ya);
      at.put(hn::MulAdd(p, s, hn::Mul(q, c)), yb);
    });
    keep_rest(a, ya, turned, width);
  }
}

// Pairs (2 i, 2 i + 1); the tables hold each cosine twice, each sine as -sin, sin.
template <class T>
void neighbours(const void* x, const float* cosine, const float* sine, void* y, std::int64_t turned,
                std::int64_t width, std::int64_t heads) {
  for (std::int64_t h = 0; h < heads; ++h) {
    const T* from = static_cast<const T*>(x) + h * width;
    T* to = static_cast<T*>(y) + h * width;
    for_vectors(turned, [&](auto at) HWY_ATTR {
      const FloatV v = at(from);
      at.put(hn::MulAdd(hn::Reverse2(Floats(), v), at(sine), hn::Mul(v, at(cosine))), to);
    });
    keep_rest(from, to, turned, width);
  }
}

RotarySweeps rotary_sweeps(DType t) {
  if (t == DType::F32) return {turn, halves<float>, neighbours<float>};
  if (t == DType::BF16) return {turn, halves<scalar::Bf16>, neighbours<scalar::Bf16>};
  return {turn, halves<scalar::F16>, neighbours<scalar::F16>};
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {
namespace {

HWY_EXPORT(rotary_sweeps);

// A position's row of the table: cosines, then sines; half as many as features of a head turn, or
// as many where neighbours are paired. Where positions are those of all sequences, and the angles
// depend on a sequence's length, there are two tables: within the first length, and beyond it.
class Rotary : public Prepared {
 public:
  explicit Rotary(const CallSpec& call)
      : attrs_(from_attrs<RotaryAttrs>(call.attrs)),
        type_(call.in[0].dtype),
        position_type_(call.in[1].dtype) {
    const Shape &x = call.in[0].shape, &p = call.in[1].shape;
    width_ = x[3].max();
    turned_ = attrs_.turned > 0 ? attrs_.turned : width_;
    heads_ = x[2].max();
    length_ = x[1].max();
    lengths_type_ = call.in.size() > 2 ? call.in[2].dtype : DType::I32;
    tokens_ = extent_of(x[0] * x[1], call);
    positions_ = extent_of(p.numel(), call);
    most_positions_ = p.max_numel();
    is_shared_ = p.rank() == 1;
    rates_ = rotary_rates(*parse_rotary_scaling(attrs_.scaling), attrs_.base, turned_);
    for (std::vector<double>* turns : {&rates_.turns, &rates_.beyond}) {
      for (double& turn : *turns) turn *= attrs_.inverse ? -1 : 1;
      if (!turns->empty()) turns->resize((turns->size() + 15) / 16 * 16);  // whole vectors
    }
    by_length_ = call.in.size() > 2 && !rates_.beyond.empty();
    tables_ = by_length_ && is_shared_ ? 2 : 1;
    row_ = attrs_.interleaved ? turned_ : turned_ / 2;
    if (type_ != DType::F64) sweeps_ = HWY_DYNAMIC_DISPATCH(rotary_sweeps)(type_);
  }

  std::size_t scratch_bytes() const override {
    return type_ == DType::F64 ? 0 : tables_ * most_positions_ * 2 * row_ * sizeof(float);
  }

  void run(const RunArgs& args) const override {
    const std::int64_t tokens = tokens_.at(args.symbols);
    const std::int64_t positions = positions_.at(args.symbols);
    if (tokens * heads_ * width_ == 0) return;
    const double longest = by_length_ ? 0 : longest_of_call(args, positions);
    if (type_ == DType::F64) return in_double(args, tokens, positions, longest);
    auto* table = static_cast<float*>(args.scratch);
    parallel_for(tables_ * positions, 16 * turned_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const std::vector<double>& turns = tables_ == 1    ? turns_of(args, r, longest)
                                           : r < positions ? rates_.turns
                                                           : rates_.beyond;
        fill_row(args, r % positions, turns.data(), table + r * 2 * row_);
      }
    });
    const auto sweep = attrs_.interleaved ? sweeps_.neighbours : sweeps_.halves;
    parallel_for(tokens, 2 * heads_ * width_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const bool is_second = tables_ == 2 && &turns_of(args, t, longest) == &rates_.beyond;
        const std::int64_t r = is_shared_ ? t % positions + (is_second ? positions : 0) : t;
        const float* cosine = table + r * 2 * row_;
        const std::int64_t from = t * heads_ * width_;
        sweep(at(static_cast<const void*>(args.in[0]), from, type_), cosine, cosine + row_,
              at(args.out[0], from, type_), turned_, width_, heads_);
      }
    });
  }

 private:
  double position(const RunArgs& args, std::int64_t p) const {
    return static_cast<double>(integer_at(position_type_, args.in[1], p));
  }
  // Only asked for where angles depend on it.
  double longest_of_call(const RunArgs& args, std::int64_t positions) const {
    double out = 0;
    for (std::int64_t p = 0; p < positions && !rates_.beyond.empty(); ++p)
      out = std::max(out, position(args, p) + 1);
    return out;
  }
  // Of the sequence of token t.
  const std::vector<double>& turns_of(const RunArgs& args, std::int64_t t, double longest) const {
    if (!by_length_) return rates_.of(longest);
    return rates_.of(static_cast<double>(integer_at(lengths_type_, args.in[2], t / length_)));
  }

  void fill_row(const RunArgs& args, std::int64_t p, const double* turns, float* cosine) const {
    constexpr std::int64_t kBlock = 128;
    alignas(64) float c[kBlock], s[kBlock];
    const auto magnitude = static_cast<float>(rates_.magnitude);
    float* sine = cosine + row_;
    for (std::int64_t i = 0; i < turned_ / 2; i += kBlock) {
      const std::int64_t n = std::min(kBlock, turned_ / 2 - i);
      sweeps_.turn(position(args, p), turns + i, c, s, n);
      for (std::int64_t j = 0; j < n; ++j) {
        const float cj = magnitude * c[j], sj = magnitude * s[j];
        if (!attrs_.interleaved) {
          cosine[i + j] = cj;
          sine[i + j] = sj;
          continue;
        }
        const std::int64_t k = 2 * (i + j);
        cosine[k] = cosine[k + 1] = cj;
        sine[k] = -sj;
        sine[k + 1] = sj;
      }
    }
  }

  void in_double(const RunArgs& args, std::int64_t tokens, std::int64_t positions,
                 double longest) const {
    const auto* x = static_cast<const double*>(args.in[0]);
    auto* y = static_cast<double*>(args.out[0]);
    const std::int64_t half = turned_ / 2;
    parallel_for(tokens, 40 * heads_ * width_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const double place = position(args, is_shared_ ? t % positions : t);
        const double* turns = turns_of(args, t, longest).data();
        for (std::int64_t i = 0; i < half; ++i) {
          const double a = place * turns[i];
          const double c = rates_.magnitude * std::cos(a), s = rates_.magnitude * std::sin(a);
          for (std::int64_t h = 0; h < heads_; ++h) {
            const std::int64_t head = (t * heads_ + h) * width_;
            const std::int64_t p = head + (attrs_.interleaved ? 2 * i : i);
            const std::int64_t q = attrs_.interleaved ? p + 1 : p + half;
            const double from_p = x[p], from_q = x[q];
            y[p] = from_p * c - from_q * s;
            y[q] = from_q * c + from_p * s;
          }
        }
        for (std::int64_t h = 0; h < heads_; ++h) {
          const std::int64_t head = (t * heads_ + h) * width_;
          for (std::int64_t i = turned_; i < width_; ++i) y[head + i] = x[head + i];
        }
      }
    });
  }

  RotaryAttrs attrs_;
  DType type_, position_type_, lengths_type_ = DType::I32;
  std::int64_t width_ = 0, turned_ = 0, heads_ = 0, length_ = 0, most_positions_ = 0, row_ = 0;
  std::int64_t tables_ = 1;
  bool is_shared_ = true, by_length_ = false;
  Extent tokens_, positions_;
  RotaryRates rates_;  // radians a position, signed
  RotarySweeps sweeps_{};
};

// Both elements of a pair are read before either is written.
std::vector<std::pair<int, int>> in_place(const CallSpec&) { return {{0, 0}}; }

}  // namespace

std::vector<Kernel> rotary_kernels() {
  return {{"cpu.rotary", "rotary", always, prepare_as<Rotary>, in_place}};
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
