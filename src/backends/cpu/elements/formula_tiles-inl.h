// Tile functions in vectors from formulas (scalar/terms.h). Include from a file that Highway
// compiles once a target, after highway.h.
#if defined(ALOFT_CPU_FORMULA_TILES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ALOFT_CPU_FORMULA_TILES_INL
#undef ALOFT_CPU_FORMULA_TILES_INL
#else
#define ALOFT_CPU_FORMULA_TILES_INL
#endif

#include "backends/cpu/elements/elementwise.h"
#include "backends/cpu/vectors/map-inl.h"
#include "backends/cpu/vectors/term_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// A condition becomes the tile of a bool.
HWY_INLINE FloatV as_floats(FloatV v) { return v; }
HWY_INLINE FloatV as_floats(hn::Mask<Floats> is) {
  return hn::IfThenElseZero(is, hn::Set(Floats(), 1.0f));
}

// As number_tile of formula_tiles.h; kIn is 1 or 2, kNumbers at most 2.
template <class T, int kIn, int kNumbers, class Formula>
void formula_tile(const T* const* in, T* out, std::int64_t n, [[maybe_unused]] const double* p) {
  constexpr int kVars = kIn + kNumbers;
  TermValues<kVars> numbers;
  for (int k = 0; k < kNumbers; ++k) numbers.var[kIn + k] = constant(static_cast<float>(p[k]));
  if constexpr (kIn == 1) {
    map(in[0], out, n, [numbers](FloatV x) HWY_ATTR -> FloatV {
      TermValues<kVars> values = numbers;
      values.var[0] = x;
      return as_floats(value_of(std::apply(Formula(), scalar::vars<0, kVars>()), values));
    });
  } else {
    map(in[0], in[1], out, n, [numbers](FloatV x, FloatV y) HWY_ATTR -> FloatV {
      TermValues<kVars> values = numbers;
      values.var[0] = x;
      values.var[1] = y;
      return as_floats(value_of(std::apply(Formula(), scalar::vars<0, kVars>()), values));
    });
  }
}

template <int kIn, int kNumbers = 0, class Formula>
FloatTiles formula_tiles(Formula) {
  return {formula_tile<float, kIn, kNumbers, Formula>,
          formula_tile<scalar::Bf16, kIn, kNumbers, Formula>,
          formula_tile<scalar::F16, kIn, kNumbers, Formula>};
}
template <int kIn, int kNumbers = 0, class Formula>
TileF32 formula_tile_f32(Formula) {
  return formula_tile<float, kIn, kNumbers, Formula>;
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
