// exp for softmaxes: arguments are at most about 0. Faster than exp_of of functions-inl.h, within 2
// units in the last place; below -87.3, where f32 would become denormal, it gives 0, and NaN stays
// NaN. Include from a file that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_EXP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_EXP_INL
#undef ALOFT_CPU_EXP_INL
#else
#define ALOFT_CPU_EXP_INL
#endif

#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// Adding it leaves round(t) + 127, the biased exponent of 2^round(t), in the low bits of the sum.
constexpr float kExponentMagic = 12583039.0f;  // 1.5 * 2^23 + 127

// 2^(n + r) of a sum n + kExponentMagic and r in [-1/2, 1/2]: the polynomial of Cephes' exp2f.
HWY_INLINE FloatV exp2_of_parts(FloatV shifted, FloatV r) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> bits;
  FloatV p = hn::Set(d, 1.535336188319500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.339887440266574e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 9.618437357674640e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.550332471162809e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 2.402264791363012e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 6.931472028550421e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const FloatV power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, shifted)));
  return hn::Mul(p, power);
}

// e^x for x <= 88; larger arguments, infinity too, give e^88.
HWY_INLINE FloatV exp_below(FloatV x) {
  const Floats d;
  // x86 keeps a NaN that is the second operand.
  x = hn::Min(hn::Set(d, 88.0f), x);
  const FloatV magic = hn::Set(d, kExponentMagic), log2e = hn::Set(d, 1.44269504f);
  const FloatV shifted = hn::MulAdd(x, log2e, magic);
  const FloatV n = hn::Sub(shifted, magic);
  const FloatV r = hn::MulAdd(x, hn::Set(d, 1.925963033e-8f), hn::MulSub(x, log2e, n));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3f)), exp2_of_parts(shifted, r));
}

// 2^t, best for t at most about 0: within 2.5 units in the last place there, and one more for each
// factor of two of a larger t; at least 2^127 from t = 127 on, 0 below -126, NaN stays NaN. With
// t = x log2(e) - c by one multiply-add it is the cheapest exponential where the error of c, the
// same for all elements of a row, can be taken out again or does not matter.
HWY_INLINE FloatV exp2_below(FloatV t) {
  const Floats d;
#if HWY_TARGET <= HWY_AVX3
  // The fraction in [0, 1), and a polynomial that is exact at 0; relative error 8.3e-8.
  const FloatV r{_mm512_reduce_ps(t.raw, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
  FloatV p = hn::Set(d, 0.001867130515165627f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.009017029777169228f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.05579991266131401f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.24016444385051727f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.6931512951850891f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const __mmask16 kept = _mm512_cmp_ps_mask(t.raw, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
  return FloatV{_mm512_maskz_scalef_ps(kept, p.raw, t.raw)};
#else
  t = hn::Min(hn::Set(d, 127.0f), t);
  const FloatV magic = hn::Set(d, kExponentMagic);
  const FloatV shifted = hn::Add(t, magic), r = hn::Sub(t, hn::Sub(shifted, magic));
  return hn::IfThenZeroElse(hn::Lt(t, hn::Set(d, -126.0f)), exp2_of_parts(shifted, r));
#endif
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
