// exp for softmaxes: arguments are at most about 0. Faster than exp_of of functions-inl.h, within 2
// units in the last place; below -87.3, where f32 would become denormal, it gives 0, and NaN stays
// NaN. Include from a file that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_EXP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_EXP_INL
#undef ALOFT_CPU_EXP_INL
#else
#define ALOFT_CPU_EXP_INL
#endif

#include "backends/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// e^x for x <= 88; larger finite arguments give e^88.
HWY_INLINE FloatV exp_below(FloatV x) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> bits;
  // x86 keeps a NaN that is the second operand.
  x = hn::Min(hn::Set(d, 88.0f), x);
  // Adding 1.5 * 2^23 + 127 leaves round(x log2 e) + 127, the biased exponent, in the low bits.
  const FloatV magic = hn::Set(d, 12583039.0f), log2e = hn::Set(d, 1.44269504f);
  const FloatV shifted = hn::MulAdd(x, log2e, magic);
  const FloatV n = hn::Sub(shifted, magic);
  const FloatV r = hn::MulAdd(x, hn::Set(d, 1.925963033e-8f), hn::MulSub(x, log2e, n));
  // 2^r on [-1/2, 1/2]: the polynomial of Cephes' exp2f.
  FloatV p = hn::Set(d, 1.535336188319500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.339887440266574e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 9.618437357674640e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.550332471162809e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 2.402264791363012e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 6.931472028550421e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const FloatV power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3f)), hn::Mul(p, power));
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
