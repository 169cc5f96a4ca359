// The smallest and the largest of many floats, and their smallest and largest magnitude, with four
// instructions a vector: on their bits as integers. Include from a file that Highway compiles once
// a target, after highway.h.
//
// Bits of floats of one sign grow with the magnitude. Read as unsigned numbers, those of negative
// floats lie above all others; read as signed ones, below. So of elements of both signs
//
//   the largest unsigned is the minimum,                 the largest signed the maximum,
//   the smallest unsigned has the least magnitude of     the smallest signed that of those below 0.
//   those that are not below 0,
#if defined(ALOFT_CPU_EXTREMES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_EXTREMES_INL
#undef ALOFT_CPU_EXTREMES_INL
#else
#define ALOFT_CPU_EXTREMES_INL
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// Lane by lane, of the floats whose bits were met. `U` tells unsigned lanes as wide as they are.
template <class U>
class Extremes {
  using I = hn::RebindToSigned<U>;
  using Word = hn::TFromD<U>;
  using SignedWord = hn::TFromD<I>;
  using V = hn::Vec<U>;
  using SignedV = hn::Vec<I>;

 public:
  HWY_INLINE Extremes()
      : top_(hn::Zero(U())),
        low_(hn::Set(U(), std::numeric_limits<Word>::max())),
        signed_top_(hn::Set(I(), std::numeric_limits<SignedWord>::min())),
        signed_low_(hn::Set(I(), std::numeric_limits<SignedWord>::max())) {}

  HWY_INLINE void meet(V bits) {
    const SignedV same = hn::BitCast(I(), bits);
    top_ = hn::Max(top_, bits);
    low_ = hn::Min(low_, bits);
    signed_top_ = hn::Max(signed_top_, same);
    signed_low_ = hn::Min(signed_low_, same);
  }
  HWY_INLINE void meet(const Extremes& other) {
    top_ = hn::Max(top_, other.top_);
    low_ = hn::Min(low_, other.low_);
    signed_top_ = hn::Max(signed_top_, other.signed_top_);
    signed_low_ = hn::Min(signed_low_, other.signed_low_);
  }

  // Bits of magnitudes: integers that are not negative.
  HWY_INLINE SignedV largest() const {
    return hn::Max(magnitude(hn::BitCast(I(), top_)), magnitude(signed_top_));
  }
  HWY_INLINE SignedV smallest() const {
    return hn::Min(magnitude(hn::BitCast(I(), low_)), magnitude(signed_low_));
  }
  // Bits of the maximum and the minimum; of a NaN in a lane that met one, or none at all.
  HWY_INLINE V max() const {
    const auto all_negative = hn::Lt(signed_top_, hn::Zero(I()));
    return hn::BitCast(U(), hn::IfThenElse(all_negative, hn::BitCast(I(), low_), signed_top_));
  }
  HWY_INLINE V min() const {
    const SignedV top = hn::BitCast(I(), top_);
    const auto has_negative = hn::Lt(top, hn::Zero(I()));
    return hn::BitCast(U(), hn::IfThenElse(has_negative, top, hn::BitCast(I(), low_)));
  }

 private:
  static HWY_INLINE SignedV magnitude(SignedV bits) {
    return hn::And(bits, hn::Set(I(), std::numeric_limits<SignedWord>::max()));
  }

  V top_, low_;
  SignedV signed_top_, signed_low_;
};

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
