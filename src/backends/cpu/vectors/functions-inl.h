// Elementary functions on f32 vectors, for every argument: infinities, NaN, denormals and huge
// arguments give what the function in double would give, rounded. The functions that networks call
// on every element are written for few instructions, with one division or none; for the others the
// approximations of Highway's contrib/math are used and their ranges guarded. The largest errors
// are 1 unit in the last place for exp and log, under 4 for the others, but up to 6 for gelu, whose
// argument is scaled, and 8 for mish (tests/ops/functions_test.cpp measures them over the whole
// range).
//
// Polynomials and quotients of polynomials were fitted to equal ripples of the relative error,
// against 40 digits. x86 keeps a NaN that is the second operand of Min and Max.
// Include from a file that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_FUNCTIONS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_FUNCTIONS_INL
#undef ALOFT_CPU_FUNCTIONS_INL
#else
#define ALOFT_CPU_FUNCTIONS_INL
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE FloatV constant(float x) { return hn::Set(Floats(), x); }

// The polynomial with these coefficients, from the highest power down. Spelled out by the compiler:
// a loop over a list of coefficients stays one at -O2, and writes the list to memory each time.
template <class... Lower>
HWY_INLINE FloatV polynomial(FloatV x, float top, Lower... lower) {
  FloatV p = constant(top);
  ((p = hn::MulAdd(p, x, constant(lower))), ...);
  return p;
}

// `y`, but x where x is NaN.
HWY_INLINE FloatV keep_nan(FloatV x, FloatV y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }

// `y`, but in double, lane by lane, where |x| is not below `limit`: for arguments outside a fast
// function's range. What an element gives never depends on its neighbours in the vector, which
// differ with how a loop is cut and fused.
template <double (*kFunction)(double)>
HWY_NOINLINE FloatV by_lane(FloatV x, FloatV y, float limit) {
  const Floats d;
  HWY_ALIGN float from[HWY_MAX_BYTES / sizeof(float)], to[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, from);
  hn::Store(y, d, to);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i)
    if (!(std::abs(from[i]) < limit))
      to[i] = static_cast<float>(kFunction(static_cast<double>(from[i])));
  return hn::Load(d, to);
}

// a / b for normal b and what b times a quotient does not leave f32: within 1 unit in the last
// place, by an approximate reciprocal and one Newton step where dividing takes 16 cycles.
HWY_INLINE FloatV quotient(FloatV a, FloatV b) {
#if HWY_TARGET <= HWY_AVX3
  const FloatV r = hn::ApproximateReciprocal(b), q = hn::Mul(a, r);
  return hn::MulAdd(hn::NegMulAdd(b, q, a), r, q);
#else
  return hn::Div(a, b);
#endif
}
HWY_INLINE FloatV reciprocal_of(FloatV b) {
#if HWY_TARGET <= HWY_AVX3
  const FloatV r = hn::ApproximateReciprocal(b);
  return hn::MulAdd(hn::NegMulAdd(b, r, constant(1)), r, r);
#else
  return hn::Div(constant(1), b);
#endif
}

// p * 2^n for whole n in [-252, 254], rounded once where the result is a denormal.
HWY_INLINE FloatV scaled_by_power(FloatV p, FloatV n) {
#if HWY_TARGET <= HWY_AVX3
  return FloatV{_mm512_scalef_ps(p.raw, n.raw)};
#else
  const Floats d;
  const hn::RebindToSigned<Floats> whole;
  const auto all = hn::ConvertTo(whole, n), half = hn::ShiftRight<1>(all);
  const auto power = [&](auto e) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(e, hn::Set(whole, 127))));
  };
  return hn::Mul(hn::Mul(p, power(half)), power(hn::Sub(all, half)));
#endif
}

// The nearest whole number, for |x| < 2^22.
HWY_INLINE FloatV nearest(FloatV x) {
  const FloatV magic = constant(12582912.0f);  // 1.5 * 2^23
  return hn::Sub(hn::Add(x, magic), magic);
}
// 2^(n + r) for whole n and r in [-1/2, 1/2]; the polynomial's relative error is 2.6e-9.
HWY_INLINE FloatV power_of_two(FloatV n, FloatV r) {
  return scaled_by_power(polynomial(r, 0.0001559467702f, 0.001340664385f, 0.009617692976f,
                                    0.05550310551f, 0.2402265278f, 0.693147215f, 1.0f),
                         n);
}

// 2^t for t of at most 0; below -152 nothing is left.
HWY_INLINE FloatV exp2_of(FloatV t) {
  t = hn::Max(constant(-152), t);
  const FloatV n = nearest(t);
  return power_of_two(n, hn::Sub(t, n));
}

// log2(e) and what its rounding left.
constexpr float kLog2E = 1.44269504f, kLog2ERest = 1.925963033e-8f;

HWY_INLINE FloatV exp_of(FloatV x) {
  x = hn::Max(constant(-105), hn::Min(constant(104), x));
  const FloatV log2e = constant(kLog2E), magic = constant(12582912.0f);
  const FloatV n = hn::Sub(hn::MulAdd(x, log2e, magic), magic);
  return power_of_two(n, hn::MulAdd(x, constant(kLog2ERest), hn::MulSub(x, log2e, n)));
}
HWY_INLINE FloatV expm1_of(FloatV x) {
  // Highway's result at -0 is +0, and a denormal's square is lost anyway: x itself is closest.
  const FloatV y = hn::Expm1(Floats(), hn::Min(x, constant(104)));
  return keep_nan(x, hn::IfThenElse(hn::Lt(hn::Abs(x), constant(1e-8f)), x, y));
}

#if HWY_TARGET <= HWY_AVX3
// x = 2^e m with m in [3/4, 3/2); log(m) = f + f^2 T(f), relative error 4.9e-9. The processor's own
// exponent and mantissa of 0, infinities, negative numbers and denormals give what they should.
HWY_INLINE FloatV log_of(FloatV x) {
  const __m512 mantissa = _mm512_getmant_ps(x.raw, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  const __m512 exponent = _mm512_getexp_ps(x.raw), one = _mm512_set1_ps(1);
  const __mmask16 halved = _mm512_cmp_ps_mask(mantissa, one, _CMP_LT_OQ);
  const FloatV e{_mm512_mask_add_ps(exponent, halved, exponent, one)};
  const FloatV f = hn::Sub(FloatV{mantissa}, constant(1));
  const FloatV t = polynomial(f, -0.0450750502f, 0.104630847f, -0.131612353f, 0.144784001f,
                              -0.16647309f, 0.199908605f, -0.250000959f, 0.333334491f, -0.5f);
  // log(2) in two parts, the first with so few bits that its product with e is exact.
  const FloatV rest = hn::MulAdd(hn::Mul(f, f), t, hn::Mul(e, constant(1.42860677e-6f)));
  return hn::MulAdd(e, constant(0.693145751953125f), hn::Add(f, rest));
}
#else
HWY_INLINE FloatV log_of(FloatV x) {
  const Floats d;
  const FloatV inf = hn::Inf(d);
  FloatV y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(inf), y);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::NaN(d), keep_nan(x, y));
}
#endif
HWY_INLINE FloatV log1p_of(FloatV x) {
  const Floats d;
  const FloatV inf = hn::Inf(d), one = constant(1);
  FloatV y = hn::Log1p(d, x);
  // 1 + x == x: the quotient of the correction would be inf / inf at infinity.
  y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
  y = hn::IfThenElse(hn::Eq(x, hn::Neg(one)), hn::Neg(inf), y);
  return hn::IfThenElse(hn::Lt(x, hn::Neg(one)), hn::NaN(d), keep_nan(x, y));
}

// Cody-Waite reduction holds up to here.
constexpr float kModerate = 30000;
template <double (*kFunction)(double)>
HWY_INLINE FloatV where_moderate(FloatV x, FloatV y) {
  const bool all = hn::AllTrue(Floats(), hn::Lt(hn::Abs(x), constant(kModerate)));
  return HWY_LIKELY(all) ? y : by_lane<kFunction>(x, y, kModerate);
}
// Highway's sine of -0 is +0.
HWY_INLINE FloatV keep_zero(FloatV x, FloatV y) {
  return hn::IfThenElse(hn::Eq(x, hn::Zero(Floats())), x, y);
}
HWY_INLINE FloatV sin_of(FloatV x) {
  return where_moderate<std::sin>(x, keep_zero(x, hn::Sin(Floats(), x)));
}
HWY_INLINE FloatV cos_of(FloatV x) { return where_moderate<std::cos>(x, hn::Cos(Floats(), x)); }
HWY_INLINE FloatV tan_of(FloatV x) {
  const FloatV y = hn::Div(hn::Sin(Floats(), x), hn::Cos(Floats(), x));
  return where_moderate<std::tan>(x, keep_zero(x, y));
}

HWY_INLINE FloatV tanh_of(FloatV x) {
  // |x| + |x|^3 R(x^2) below 0.63: relative error 4.8e-9.
  const FloatV a = hn::Min(constant(9.1f), hn::Abs(x));
  const FloatV u = hn::Mul(a, a);
  const FloatV p =
      polynomial(u, -0.00566697699f, 0.0206061765f, -0.0537300071f, 0.13331331f, -0.333332781f);
  const FloatV small = hn::MulAdd(hn::Mul(u, a), p, a);
  // 1 - 2 / (1 + e^2|x|) above; from 9.1 on it rounds to 1.
  const FloatV factor = constant(2 * kLog2E), n = nearest(hn::Mul(a, factor));
  const FloatV r = hn::MulAdd(a, constant(2 * kLog2ERest), hn::MulSub(a, factor, n));
  const FloatV e = hn::Add(power_of_two(n, r), constant(1));
  const FloatV large = hn::NegMulAdd(reciprocal_of(e), constant(2), constant(1));
  return hn::CopySignToAbs(hn::IfThenElse(hn::Lt(a, constant(0.63f)), small, large), x);
}
HWY_INLINE FloatV sinh_of(FloatV x) {
  const FloatV a = hn::Abs(x);
  // e^(a/2) squared does not overflow before sinh does.
  const FloatV h = exp_of(hn::Mul(a, constant(0.5f)));
  const FloatV half = hn::Mul(hn::Mul(h, constant(0.5f)), h);
  const FloatV large = hn::Sub(half, hn::Div(constant(0.25f), half));
  const FloatV e = hn::Expm1(Floats(), hn::Min(a, constant(2)));
  const FloatV middle = hn::Mul(constant(0.5f), hn::Add(e, hn::Div(e, hn::Add(e, constant(1)))));
  const FloatV small = hn::IfThenElse(hn::Lt(a, constant(1e-4f)), a, middle);
  return keep_nan(x, hn::CopySignToAbs(hn::IfThenElse(hn::Lt(a, constant(1)), small, large), x));
}
HWY_INLINE FloatV cosh_of(FloatV x) {
  const FloatV h = exp_of(hn::Mul(hn::Abs(x), constant(0.5f)));
  const FloatV half = hn::Mul(hn::Mul(h, constant(0.5f)), h);
  return hn::Add(half, hn::Div(constant(0.25f), half));
}

HWY_INLINE FloatV erf_of(FloatV x) {
  // x + x S(x^2) below 0.95: relative error 6.1e-10.
  const FloatV u = hn::Mul(x, x);
  const FloatV p = polynomial(u, 8.18509219e-5f, -0.000809770309f, 0.00519695206f, -0.0268577051f,
                              0.11283664f, -0.376126316f, 0.12837917f);
  const FloatV small = hn::MulAdd(x, p, x);
  // 1 - 2^L(|x|) above, 2^L being erfc; from 3.95 on it rounds to 1.
  const FloatV a = hn::Min(constant(3.95f), hn::Abs(x));
  const FloatV l = polynomial(a, 0.000279314661f, -0.00435729892f, 0.031933942f, -0.149664817f,
                              -0.919576813f, -1.62670257f, -0.000328448784f);
  const FloatV n = nearest(l), tail = power_of_two(n, hn::Sub(l, n));
  const FloatV large = hn::CopySignToAbs(hn::Sub(constant(1), tail), x);
  return hn::IfThenElse(hn::Lt(a, constant(0.95f)), small, large);
}

// The normal distribution at x: its density times sqrt(2 pi), and its distribution function, both
// with full relative accuracy in the left tail.
struct Normal {
  FloatV density, below;
};
HWY_INLINE Normal normal_of(FloatV x) {
  // At 14.6 the density has left f32's range.
  const FloatV h = hn::Min(constant(14.6f), hn::Abs(x));
  // e^(-h^2 / 2): the rounding error of the square is put back, which in the tail would cost a
  // thousand units in the last place.
  const FloatV s = hn::Mul(h, h), error = hn::MulSub(h, h, s);
  const FloatV factor = constant(-0.5f * kLog2E), magic = constant(12582912.0f);
  const FloatV n = hn::Sub(hn::MulAdd(s, factor, magic), magic);
  FloatV r = hn::MulAdd(s, constant(-0.5f * kLog2ERest), hn::MulSub(s, factor, n));
  r = hn::MulAdd(error, factor, r);
  const FloatV density = power_of_two(n, r);
  // The tail over the density: relative error 6e-9. All coefficients are positive, so nothing
  // cancels.
  const FloatV top = polynomial(h, 0.00412388590588895f, 0.04068415186035146f, 0.1833860148667946f,
                                0.43849830448965504f, 0.5000000029943973f);
  const FloatV bottom =
      polynomial(h, 0.01033693096285744f, 0.10198642354070042f, 0.4698689886602805f,
                 1.2031293511889032f, 1.6748815954734235f, 1.0f);
  const FloatV tail = quotient(hn::Mul(density, top), bottom);
  const FloatV zero = hn::Zero(Floats());
  return {density, hn::IfThenElse(hn::Lt(x, zero), tail, hn::Sub(constant(1), tail))};
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
