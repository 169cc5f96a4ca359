#include "backends/cpu/elements/normal_pairs.h"

#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elements/normal_pairs.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After those two, in a block of its own.

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using DoubleV = hn::Vec<Doubles>;
using Words64 = hn::RebindToUnsigned<Doubles>;
using Word64V = hn::Vec<Words64>;

// Exact for integers below 2^52: they are the mantissa of 2^52 + x.
HWY_INLINE DoubleV double_of(Word64V x) {
  const Doubles d;
  const Words64 w;
  return hn::Sub(hn::BitCast(d, hn::Or(x, hn::Set(w, 0x4330000000000000u))), hn::Set(d, 0x1p52));
}

// Sine and cosine for |x| <= pi/4: Taylor's series, whose first dropped terms are below 1e-17.
HWY_INLINE DoubleV small_sin(DoubleV x) {
  const Doubles d;
  const DoubleV y = hn::Mul(x, x);
  DoubleV p = hn::Set(d, 1.0 / 355687428096000.0);  // 1 / 17!
  p = hn::MulAdd(p, y, hn::Set(d, -1.0 / 1307674368000.0));
  p = hn::MulAdd(p, y, hn::Set(d, 1.0 / 6227020800.0));
  p = hn::MulAdd(p, y, hn::Set(d, -1.0 / 39916800.0));
  p = hn::MulAdd(p, y, hn::Set(d, 1.0 / 362880.0));
  p = hn::MulAdd(p, y, hn::Set(d, -1.0 / 5040.0));
  p = hn::MulAdd(p, y, hn::Set(d, 1.0 / 120.0));
  p = hn::MulAdd(p, y, hn::Set(d, -1.0 / 6.0));
  return hn::MulAdd(hn::Mul(p, y), x, x);
}

HWY_INLINE DoubleV small_cos(DoubleV x) {
  const Doubles d;
  const DoubleV y = hn::Mul(x, x);
  DoubleV p = hn::Set(d, 1.0 / 20922789888000.0);  // 1 / 16!
  p = hn::MulAdd(p, y, hn::Set(d, -1.0 / 87178291200.0));
  p = hn::MulAdd(p, y, hn::Set(d, 1.0 / 479001600.0));
  p = hn::MulAdd(p, y, hn::Set(d, -1.0 / 3628800.0));
  p = hn::MulAdd(p, y, hn::Set(d, 1.0 / 40320.0));
  p = hn::MulAdd(p, y, hn::Set(d, -1.0 / 720.0));
  p = hn::MulAdd(p, y, hn::Set(d, 1.0 / 24.0));
  p = hn::MulAdd(p, y, hn::Set(d, -0.5));
  return hn::MulAdd(p, y, hn::Set(d, 1.0));
}

void pairs_of(const std::uint32_t* words, std::int64_t n, double* normal) {
  const Doubles d;
  const Words64 w;
  const hn::Rebind<std::uint32_t, Doubles> half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < n; i += 2 * lanes) {
    hn::Vec<decltype(half)> radius_word, angle_word;
    hn::LoadInterleaved2(half, words + i, radius_word, angle_word);
    const DoubleV uniform = hn::Mul(
        hn::Add(double_of(hn::PromoteTo(w, radius_word)), hn::Set(d, 1.0)), hn::Set(d, 0x1p-32));
    const DoubleV radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0), hn::Log(d, uniform)));
    // The angle is a 2^32th of a turn: the nearest quarter turn and the rest, both exact.
    const Word64V angle = hn::PromoteTo(w, angle_word);
    const Word64V quarter = hn::ShiftRight<30>(hn::Add(angle, hn::Set(w, 1u << 29)));
    const DoubleV rest = hn::NegMulAdd(double_of(quarter), hn::Set(d, 0x1p30), double_of(angle));
    const DoubleV x = hn::Mul(rest, hn::Set(d, 2 * std::numbers::pi * 0x1p-32));
    const DoubleV sine = small_sin(x), cosine = small_cos(x);
    const auto is_odd =
        hn::MaskFromVec(hn::BitCast(d, hn::Sub(hn::Zero(w), hn::And(quarter, hn::Set(w, 1)))));
    const auto sign = [&](Word64V q) {  // bit 1 of q, as the sign of a double
      return hn::BitCast(d, hn::ShiftLeft<62>(hn::And(q, hn::Set(w, 2))));
    };
    const DoubleV cos_of =
        hn::Xor(hn::IfThenElse(is_odd, sine, cosine), sign(hn::Add(quarter, hn::Set(w, 1))));
    const DoubleV sin_of = hn::Xor(hn::IfThenElse(is_odd, cosine, sine), sign(quarter));
    hn::StoreInterleaved2(hn::Mul(radius, cos_of), hn::Mul(radius, sin_of), d, normal + i);
  }
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(pairs_of);

void normal_pairs(const std::uint32_t* words, std::int64_t n, double* normal) {
  HWY_DYNAMIC_DISPATCH(pairs_of)(words, n, normal);
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
