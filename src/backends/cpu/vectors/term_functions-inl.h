// The functions of terms (scalar/functions.h) on f32 vectors, for terms-inl.h. Include from a file
// that Highway compiles once a target, after highway.h.
#if defined(ALOFT_CPU_TERM_FUNCTIONS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_TERM_FUNCTIONS_INL
#undef ALOFT_CPU_TERM_FUNCTIONS_INL
#else
#define ALOFT_CPU_TERM_FUNCTIONS_INL
#endif

#include "backends/cpu/vectors/functions-inl.h"
#include "backends/cpu/vectors/power-inl.h"
#include "backends/cpu/vectors/terms-inl.h"
#include "scalar/arithmetic.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

#define ALOFT_FUNCTION(op, ...) \
  HWY_INLINE FloatV function_of(Function<scalar::TermOp::op>, FloatV x) { return __VA_ARGS__; }
ALOFT_FUNCTION(Exp, exp_of(x))
ALOFT_FUNCTION(Exp2, exp2_of(x))
ALOFT_FUNCTION(Expm1, expm1_of(x))
ALOFT_FUNCTION(Log, log_of(x))
ALOFT_FUNCTION(Log1p, log1p_of(x))
ALOFT_FUNCTION(Log1pOfFraction, hn::Log1p(Floats(), x))
ALOFT_FUNCTION(Sin, sin_of(x))
ALOFT_FUNCTION(Cos, cos_of(x))
ALOFT_FUNCTION(Tan, tan_of(x))
ALOFT_FUNCTION(Asin, hn::Asin(Floats(), x))
ALOFT_FUNCTION(Acos, hn::Acos(Floats(), x))
ALOFT_FUNCTION(Atan, hn::Atan(Floats(), x))
ALOFT_FUNCTION(Sinh, sinh_of(x))
ALOFT_FUNCTION(Cosh, cosh_of(x))
ALOFT_FUNCTION(Tanh, tanh_of(x))
ALOFT_FUNCTION(Erf, erf_of(x))
ALOFT_FUNCTION(NormalBelow, normal_of(x).below)
ALOFT_FUNCTION(NormalBell, normal_of(x).density)
ALOFT_FUNCTION(Floor, hn::Floor(x))
ALOFT_FUNCTION(Ceil, hn::Ceil(x))
ALOFT_FUNCTION(Round, hn::Round(x))
ALOFT_FUNCTION(Inverse, reciprocal_of(x))
#undef ALOFT_FUNCTION
HWY_INLINE FloatV function_of(Function<scalar::TermOp::Quotient>, FloatV a, FloatV b) {
  return quotient(a, b);
}
HWY_INLINE FloatV function_of(Function<scalar::TermOp::Pow>, FloatV a, FloatV b) {
  return pow_of(a, b);
}

// NaN where either is.
HWY_INLINE FloatV maximum_of(FloatV a, FloatV b) {
  return value_of(scalar::maximum(scalar::Var<0>(), scalar::Var<1>()), TermValues<2>{{a, b}});
}
HWY_INLINE FloatV minimum_of(FloatV a, FloatV b) {
  return value_of(scalar::minimum(scalar::Var<0>(), scalar::Var<1>()), TermValues<2>{{a, b}});
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
