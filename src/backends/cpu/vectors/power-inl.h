// x^y on f32 vectors, for every pair of arguments what C says: within 1.1 units in the last
// place. The logarithm and its product with y are taken in double, which holds what the
// exponential's integer part takes away. Include from a file that Highway compiles once a target,
// after highway.h.
#if defined(ALOFT_CPU_POWER_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_POWER_INL
#undef ALOFT_CPU_POWER_INL
#else
#define ALOFT_CPU_POWER_INL
#endif

#include "backends/cpu/vectors/functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE FloatV power_of_positive(FloatV x, FloatV y) {
  return constant(std::pow(hn::GetLane(x), hn::GetLane(y)));
}
#else
// n + r = y log2(x), n whole and r in [-1/2, 1/2].
template <class V>
struct PowerParts {
  V n, r;
};

// Of half a vector: x = 2^e m, and about 1 / (m + 1). With s = (m - 1) / (m + 1) log2(m) is a
// polynomial in s, odd, of relative error 4.3e-12.
template <class V, class H = hn::VFromD<hn::Half<Floats> > >
HWY_INLINE PowerParts<H> power_parts(V e, V m, V reciprocal, V y) {
  const hn::DFromV<V> d;
  const auto number = [&](double c) HWY_ATTR { return hn::Set(d, c); };
  const V f = hn::Sub(m, number(1)), b = hn::Add(m, number(1));
  const V q = hn::MulAdd(reciprocal, hn::NegMulAdd(b, reciprocal, number(1)), reciprocal);
  const V near = hn::Mul(f, q), s = hn::MulAdd(q, hn::NegMulAdd(b, near, f), near);
  const V u = hn::Mul(s, s);
  V p = hn::MulAdd(number(0.340714136651912), u, number(0.41167365840081593));
  p = hn::MulAdd(p, u, number(0.5770835677034893));
  p = hn::MulAdd(p, u, number(0.9617966734432283));
  p = hn::MulAdd(p, u, number(2.885390081789993));
  V t = hn::Mul(y, hn::MulAdd(s, p, e));
  // Beyond, the result is 0 or infinite.
  t = hn::Max(number(-200), hn::Min(number(200), t));
  const V magic = number(0x1.8p52), n = hn::Sub(hn::Add(t, magic), magic);
  const hn::Half<Floats> half;
  return {hn::DemoteTo(half, n), hn::DemoteTo(half, hn::Sub(t, n))};
}

// For finite x > 0 and finite y.
HWY_INLINE FloatV power_of_positive(FloatV x, FloatV y) {
  const Floats d;
  const hn::Half<Floats> half;
  const hn::Rebind<double, decltype(half)> wide;
  const hn::RebindToSigned<Floats> whole;
  const auto is_tiny = hn::Lt(x, constant(0x1p-126f));
  const auto bits = hn::BitCast(whole, hn::IfThenElse(is_tiny, hn::Mul(x, constant(0x1p24f)), x));
  // m in [sqrt(1/2), sqrt(2)).
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(whole, 0x3f3504f3)));
  const FloatV m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  const FloatV e = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(is_tiny, constant(24)));
  const FloatV reciprocal = hn::ApproximateReciprocal(hn::Add(m, constant(1)));
  const auto lower = [&](FloatV v) HWY_ATTR { return hn::PromoteTo(wide, hn::LowerHalf(half, v)); };
  const auto upper = [&](FloatV v) HWY_ATTR { return hn::PromoteTo(wide, hn::UpperHalf(half, v)); };
  const auto a = power_parts(lower(e), lower(m), lower(reciprocal), lower(y));
  const auto b = power_parts(upper(e), upper(m), upper(reciprocal), upper(y));
  return power_of_two(hn::Combine(d, b.n, a.n), hn::Combine(d, b.r, a.r));
}
#endif

// `p`, but what C says where x is not positive, or one of them is no finite number.
HWY_INLINE FloatV power_of_special(FloatV x, FloatV y, FloatV p) {
  const Floats d;
  const FloatV zero = hn::Zero(d), one = constant(1), inf = hn::Inf(d), a = hn::Abs(x);
  const auto y_is_inf = hn::Eq(hn::Abs(y), inf);
  const auto is_extreme = hn::Or(y_is_inf, hn::Or(hn::Eq(a, zero), hn::Eq(a, inf)));
  const auto grows = hn::Xor(hn::Gt(a, one), hn::Lt(y, zero));
  p = hn::IfThenElse(is_extreme, hn::IfThenElseZero(grows, inf), p);
  const FloatV h = hn::Mul(y, constant(0.5f));
  const auto is_whole = hn::Eq(hn::Round(y), y);
  const auto is_odd = hn::And(is_whole, hn::Not(hn::Eq(hn::Round(h), h)));
  p = hn::IfThenElse(is_odd, hn::CopySignToAbs(p, x), p);
  const auto has_no_root = hn::AndNot(is_whole, hn::And(hn::Lt(x, zero), hn::Gt(x, hn::Neg(inf))));
  const auto is_nan = hn::Or(has_no_root, hn::Or(hn::IsNaN(x), hn::IsNaN(y)));
  p = hn::IfThenElse(is_nan, hn::NaN(d), p);
  const auto is_one =
      hn::Or(hn::Eq(y, zero), hn::Or(hn::Eq(x, one), hn::And(hn::Eq(a, one), y_is_inf)));
  return hn::IfThenElse(is_one, one, p);
}

HWY_INLINE FloatV pow_of(FloatV x, FloatV y) {
  const FloatV inf = hn::Inf(Floats());
  const auto is_positive = hn::And(hn::Gt(x, hn::Zero(Floats())), hn::Lt(x, inf));
  const FloatV p = power_of_positive(hn::Abs(x), y);
  const auto is_usual = hn::And(is_positive, hn::Lt(hn::Abs(y), inf));
  if (HWY_LIKELY(hn::AllTrue(Floats(), is_usual))) return p;
  return power_of_special(x, y, p);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
