// Elementary functions on f32 vectors, for every argument: infinities, NaN, denormals and huge
// arguments give what the function in double would give, rounded. The approximations of Highway's
// contrib/math are used where they are good; their ranges are guarded here. The largest errors are
// 1 unit in the last place for exp and log, under 4 for the others, 6 for gelu, whose argument is
// scaled (tests/ops/functions_test.cpp measures them over the whole range).
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

#include "backends/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE FloatV constant(float x) { return hn::Set(Floats(), x); }

// `y`, but x where x is NaN.
HWY_INLINE FloatV keep_nan(FloatV x, FloatV y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }

// Lane by lane in double, for arguments outside a fast function's range.
template <double (*kFunction)(double)>
HWY_NOINLINE FloatV by_lane(FloatV x) {
  const Floats d;
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i)
    lanes[i] = static_cast<float>(kFunction(static_cast<double>(lanes[i])));
  return hn::Load(d, lanes);
}

HWY_INLINE FloatV exp_of(FloatV x) {
  return keep_nan(x, hn::Exp(Floats(), hn::Min(x, constant(104))));
}
HWY_INLINE FloatV expm1_of(FloatV x) {
  // Highway's result at -0 is +0, and a denormal's square is lost anyway: x itself is closest.
  const FloatV y = hn::Expm1(Floats(), hn::Min(x, constant(104)));
  return keep_nan(x, hn::IfThenElse(hn::Lt(hn::Abs(x), constant(1e-8f)), x, y));
}

HWY_INLINE FloatV log_of(FloatV x) {
  const Floats d;
  const FloatV inf = hn::Inf(d);
  FloatV y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(inf), y);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::NaN(d), keep_nan(x, y));
}
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
HWY_INLINE bool all_moderate(FloatV x) {
  return hn::AllTrue(Floats(), hn::Lt(hn::Abs(x), constant(30000)));
}
HWY_INLINE FloatV sin_of(FloatV x) {
  if (HWY_UNLIKELY(!all_moderate(x))) return by_lane<std::sin>(x);
  return hn::Sin(Floats(), x);
}
HWY_INLINE FloatV cos_of(FloatV x) {
  if (HWY_UNLIKELY(!all_moderate(x))) return by_lane<std::cos>(x);
  return hn::Cos(Floats(), x);
}
HWY_INLINE FloatV tan_of(FloatV x) {
  if (HWY_UNLIKELY(!all_moderate(x))) return by_lane<std::tan>(x);
  return hn::Div(hn::Sin(Floats(), x), hn::Cos(Floats(), x));
}

HWY_INLINE FloatV tanh_of(FloatV x) {
  // From 9.1 on tanh rounds to 1.
  const FloatV a = hn::Min(hn::Abs(x), constant(10));
  const FloatV e = hn::Expm1(Floats(), hn::Add(a, a));
  const FloatV y = hn::Div(e, hn::Add(e, constant(2)));
  const FloatV small = hn::IfThenElse(hn::Lt(a, constant(1e-4f)), a, y);
  return keep_nan(x, hn::CopySignToAbs(small, x));
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

// exp(-a^2 * scale) for 0 <= a, scale 1 or 1/2: the rounding error of the square is put back, which
// in the tail would cost a thousand units in the last place.
HWY_INLINE FloatV exp_minus_square(FloatV a, FloatV scale) {
  const FloatV s = hn::Mul(a, a);
  const FloatV error = hn::Mul(hn::MulSub(a, a, s), scale);
  const FloatV e = hn::Exp(Floats(), hn::Neg(hn::Mul(s, scale)));
  return hn::NegMulAdd(error, e, e);
}

// e^(z^2) erfc(z) for 0 <= z <= 10.6: (1 + 2 z) times it is a polynomial of degree 10 in
// t = (z - 3) / (z + 3), fitted with a relative error of 2.3e-9 (weighted least squares, reweighted
// to equal ripples, against 40 digits).
HWY_INLINE FloatV erfcx_of(FloatV z) {
  const FloatV t = hn::Div(hn::Sub(z, constant(3)), hn::Add(z, constant(3)));
  FloatV p = constant(-0.000263429f);
  for (float c : {-0.0007655094f, 0.0020090563f, 0.0025630323f, -0.02380249f, 0.06829581f,
                  -0.11927006f, 0.1296465f, -0.047562454f, -0.13562115f, 1.253008f})
    p = hn::MulAdd(p, t, constant(c));
  return hn::Div(p, hn::MulAdd(z, constant(2), constant(1)));
}

HWY_INLINE FloatV erf_of(FloatV x) {
  const FloatV a = hn::Abs(x), u = hn::Mul(x, x);
  // erf(x) / x on [0, 1] in x^2, fitted likewise: relative error 1.3e-9.
  FloatV p = constant(7.85385345807299e-05f);
  for (float c : {-0.000801019137725234f, 0.00518832728266716f, -0.026853810995817184f,
                  0.1128358542919159f, -0.3761262595653534f, 1.1283791065216064f})
    p = hn::MulAdd(p, u, constant(c));
  const FloatV z = hn::Min(a, constant(10));
  const FloatV tail = hn::Mul(exp_minus_square(z, constant(1)), erfcx_of(z));
  const FloatV large = hn::CopySignToAbs(hn::Sub(constant(1), tail), x);
  return keep_nan(x, hn::IfThenElse(hn::Lt(a, constant(1)), hn::Mul(x, p), large));
}

// The normal distribution at x: its density times sqrt(2 pi), and its distribution function, both
// with full relative accuracy in the left tail.
struct Normal {
  FloatV density, below;
};
HWY_INLINE Normal normal_of(FloatV x) {
  // At 14.6 the density has left f32's range.
  const FloatV h = hn::Min(hn::Abs(x), constant(14.6f));
  const FloatV e = exp_minus_square(h, constant(0.5f));
  const FloatV c =
      hn::Mul(hn::Mul(e, constant(0.5f)), erfcx_of(hn::Mul(h, constant(0.70710678118654752f))));
  const FloatV zero = hn::Zero(Floats());
  return {e, hn::IfThenElse(hn::Lt(x, zero), c, hn::Sub(constant(1), c))};
}

// 1 / (1 + e^-x), with its left tail.
HWY_INLINE FloatV sigmoid_of(FloatV x) {
  const FloatV e = exp_of(hn::Neg(hn::Abs(x)));
  const FloatV top = hn::IfThenElse(hn::Lt(x, hn::Zero(Floats())), e, constant(1));
  return hn::Div(top, hn::Add(constant(1), e));
}
// log(1 + e^x)
HWY_INLINE FloatV softplus_of(FloatV x) {
  const FloatV e = exp_of(hn::Neg(hn::Abs(x)));
  return hn::Add(hn::IfThenZeroElse(hn::Lt(x, hn::Zero(Floats())), x), hn::Log1p(Floats(), e));
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
