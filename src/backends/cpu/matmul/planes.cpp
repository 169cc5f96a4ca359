#include "backends/cpu/matmul/planes.h"

#include <bit>
#include <type_traits>

#include "base/error.h"
#include "scalar/float_formats.h"

// cpu_features() refuses a processor without AVX2: a scalar version would never run.
#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_AVX2
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/planes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Bits = hn::ScalableTag<std::uint32_t>;
using Vec = hn::Vec<Bits>;

constexpr std::uint32_t kInfinity = 0x7f800000u;
constexpr std::uint32_t kRoundsToInfinity = 0x7f7f8000u;  // and all magnitudes above
constexpr std::uint32_t kQuiet = 0x00400000u;

HWY_INLINE hn::Mask<Bits> below(Vec magnitude, std::uint32_t limit) {
  const hn::RebindToSigned<Bits> di;
  return hn::RebindMask(Bits(),
                        hn::Lt(hn::BitCast(di, magnitude), hn::Set(di, static_cast<int>(limit))));
}

// Takes the next plane, the upper halves of the words, from `rest`.
HWY_INLINE Vec next_plane(Vec& rest) {
  const Bits du;
  const hn::RebindToFloat<Bits> df;
  const Vec magnitude = hn::And(rest, hn::Set(du, 0x7fffffffu));
  const Vec even = hn::And(hn::ShiftRight<16>(rest), hn::Set(du, 1u));
  const Vec carry =
      hn::IfThenElseZero(below(magnitude, kRoundsToInfinity), hn::Add(hn::Set(du, 0x7fffu), even));
  Vec top = hn::And(hn::Add(rest, carry), hn::Set(du, 0xffff0000u));
  // A NaN whose payload lies in the lower half alone stays one.
  top = hn::Or(top, hn::IfThenZeroElse(below(magnitude, kInfinity + 1), hn::Set(du, kQuiet)));
  const auto left = hn::Sub(hn::BitCast(df, rest), hn::BitCast(df, top));
  rest = hn::IfThenElseZero(below(magnitude, kInfinity), hn::BitCast(du, left));
  return top;
}

HWY_INLINE std::uint16_t next_plane(float& rest) {
  const auto bits = std::bit_cast<std::uint32_t>(rest);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t top = bits;
  if (magnitude < kRoundsToInfinity) top += 0x7fffu + (bits >> 16 & 1u);
  if (magnitude > kInfinity) top |= kQuiet;
  top &= 0xffff0000u;
  rest = magnitude < kInfinity ? rest - std::bit_cast<float>(top) : 0.0f;
  return static_cast<std::uint16_t>(top >> 16);
}

// Both planes of a value that was f16, whose exponent leaves them room: what is left of 11 bits
// after 8 is exact.
HWY_INLINE Vec f16_planes(Vec x, Vec& rest) {
  const Bits du;
  const hn::RebindToFloat<Bits> df;
  const auto finite = below(hn::And(x, hn::Set(du, 0x7fffffffu)), kInfinity);
  const Vec carry = hn::Add(hn::Set(du, 0x7fffu), hn::And(hn::ShiftRight<16>(x), hn::Set(du, 1u)));
  const Vec top = hn::And(hn::Add(x, hn::IfThenElseZero(finite, carry)), hn::Set(du, 0xffff0000u));
  rest = hn::IfThenElseZero(finite,
                            hn::BitCast(du, hn::Sub(hn::BitCast(df, x), hn::BitCast(df, top))));
  return top;
}

struct FromF32 {
  using Element = float;
  static HWY_INLINE Vec vec(const float* p) {
    return hn::BitCast(Bits(), hn::LoadU(hn::RebindToFloat<Bits>(), p));
  }
  static float one(const float* p) { return *p; }
};
struct FromF16 {
  using Element = std::uint16_t;
  static HWY_INLINE Vec vec(const std::uint16_t* p) {
    const hn::RebindToFloat<Bits> df;
    const hn::Rebind<hwy::float16_t, decltype(df)> dh;
    return hn::BitCast(
        Bits(), hn::PromoteTo(df, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(p))));
  }
  static float one(const std::uint16_t* p) { return scalar::f32_of(scalar::F16{*p}); }
};

template <class From, int kPlanes>
void split_line(const typename From::Element* src, std::int64_t n, std::uint16_t* dst,
                std::int64_t plane) {
  const hn::ScalableTag<std::uint16_t> d16;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Bits()));
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    Vec left = From::vec(src + i), right = From::vec(src + i + lanes);
    if constexpr (std::is_same_v<From, FromF16>) {
      Vec left2, right2;
      left = f16_planes(left, left2);
      right = f16_planes(right, right2);
      hn::StoreU(hn::ConcatOdd(d16, hn::BitCast(d16, right), hn::BitCast(d16, left)), d16, dst + i);
      hn::StoreU(hn::ConcatOdd(d16, hn::BitCast(d16, right2), hn::BitCast(d16, left2)), d16,
                 dst + plane + i);
      continue;
    }
    for (int p = 0; p < kPlanes; ++p) {
      const Vec l = next_plane(left), r = next_plane(right);
      hn::StoreU(hn::ConcatOdd(d16, hn::BitCast(d16, r), hn::BitCast(d16, l)), d16,
                 dst + p * plane + i);
    }
  }
  for (; i < n; ++i) {
    float rest = From::one(src + i);
    for (int p = 0; p < kPlanes; ++p) dst[p * plane + i] = next_plane(rest);
  }
}

template <class From, int kPlanes>
void split_lines(const PlanesJob& job) {
  const auto* src = static_cast<const typename From::Element*>(job.src);
  for (std::int64_t line = 0; line < job.lines; ++line)
    split_line<From, kPlanes>(src + line * job.ld, job.n, job.dst + line * job.ldd, job.plane);
}

void split(const PlanesJob& job) {
  if (job.type == DType::F16)
    split_lines<FromF16, 2>(job);
  else if (job.planes == 2)
    split_lines<FromF32, 2>(job);
  else
    split_lines<FromF32, 3>(job);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {
HWY_EXPORT(split);

void split_into_planes(const PlanesJob& job) {
  ensure(job.type == DType::F16 ? job.planes == 2
                                : job.type == DType::F32 && (job.planes == 2 || job.planes == 3),
         "two planes of f16, two or three of f32");
  HWY_DYNAMIC_DISPATCH(split)(job);
}
}  // namespace aloft::cpu
#endif
