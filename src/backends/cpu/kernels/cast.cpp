// cast between all types: directly where f32 lies on one side or holds the values on the way,
// through double otherwise, rounded once; integers among themselves in 64 bits, cut to the width.
#include "ops/cast.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/elements/elementwise.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/vectors/integer_tiles.h"
#include "backends/cpu/vectors/tiles.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

class Cast : public Prepared, public TileOp {
 public:
  explicit Cast(const CallSpec& call)
      : numel_(extent_of(call.out[0].shape.numel(), call)),
        from_(call.in[0].dtype),
        to_(call.out[0].dtype) {}

  void run(const RunArgs& args) const override {
    parallel_for(numel_.at(args.symbols), 1, [&](std::int64_t begin, std::int64_t end) {
      convert(at(args.in[0], begin, from_), at(args.out[0], begin, to_), end - begin);
    });
  }

  const LoopPart* loop_part() const override { return this; }
  ElementwiseCode tile_code() const override { return copy_code(); }

 private:
  // A float of at most 32 bits, or a type whose every value f32 holds.
  static constexpr bool is_light(DType t) { return has_tiles(t) || size_of(t) == 1; }

  void convert(const void* src, void* dst, std::int64_t n) const {
    if (from_ == to_) {
      std::memmove(dst, src, n * size_of(to_));
    } else if (is_integer(from_) && is_integer(to_)) {
      by_tiles<std::int64_t>(src, dst, n);
    } else if (from_ == DType::F32 && has_tiles(to_)) {
      narrow(static_cast<const float*>(src), to_, dst, n);
    } else if (is_low(from_) && to_ == DType::F32) {
      widen(from_, src, static_cast<float*>(dst), n);
    } else if (from_ == DType::I64 && has_tiles(to_)) {
      round_once(static_cast<const std::int64_t*>(src), dst, n);
    } else if (is_light(from_) && to_ != DType::F64) {
      by_tiles<float>(src, dst, n);
    } else {
      by_tiles<double>(src, dst, n);
    }
  }

  // Through doubles that are rounded to odd: what they lose still tells on which side of a tie the
  // integer lies, so that the second rounding is the only one.
  void round_once(const std::int64_t* src, void* dst, std::int64_t n) const {
    alignas(64) double buffer[kTile];
    for (std::int64_t i = 0; i < n; i += kTile) {
      const std::int64_t m = std::min(kTile, n - i);
      for (std::int64_t j = 0; j < m; ++j) buffer[j] = to_odd(src[i + j]);
      close_f64(to_, buffer, at(dst, i, to_), m);
    }
  }
  static double to_odd(std::int64_t v) {
    constexpr std::uint64_t kExact = std::uint64_t{1} << 53;
    const std::uint64_t size = v < 0 ? -static_cast<std::uint64_t>(v) : v;
    if (size <= kExact) return static_cast<double>(v);
    const int lost = std::bit_width(size) - 53;
    const std::uint64_t kept = size >> lost;
    const bool is_exact = kept << lost == size;
    const double odd = std::ldexp(static_cast<double>(is_exact ? kept : kept | 1), lost);
    return v < 0 ? -odd : odd;
  }

  template <class T>
  void by_tiles(const void* src, void* dst, std::int64_t n) const {
    alignas(64) T buffer[kTile];
    for (std::int64_t i = 0; i < n; i += kTile) {
      const std::int64_t m = std::min(kTile, n - i);
      if constexpr (std::is_same_v<T, float>)
        close_f32(to_, open_f32(from_, at(src, i, from_), buffer, m), at(dst, i, to_), m);
      else if constexpr (std::is_same_v<T, std::int64_t>)
        close_i64(to_, open_i64(from_, at(src, i, from_), buffer, m), at(dst, i, to_), m);
      else
        close_f64(to_, open_f64(from_, at(src, i, from_), buffer, m), at(dst, i, to_), m);
    }
  }

  Extent numel_;
  DType from_, to_;
};

}  // namespace

std::vector<Kernel> cast_kernels() { return {{"cpu.cast", "cast", always, prepare_as<Cast>}}; }

}  // namespace aloft::cpu
