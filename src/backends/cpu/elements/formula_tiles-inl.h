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

// A formula as a function of vectors: of kIn operands and kNumbers of the op's numbers.
template <int kIn, int kNumbers, class Formula>
struct FormulaOfVectors {
  // Its constants are known when it is compiled, so that equal parts are computed once.
  static constexpr auto kTerm = std::apply(Formula(), scalar::vars<0, kIn + kNumbers>());
  TermValues<kIn + kNumbers> values;

  HWY_INLINE explicit FormulaOfVectors([[maybe_unused]] const double* numbers) {
    for (int k = 0; k < kNumbers; ++k)
      values.var[kIn + k] = constant(static_cast<float>(numbers[k]));
  }
  HWY_INLINE FloatV operator()(FloatV x) const {
    TermValues<kIn + kNumbers> all = values;
    all.var[0] = x;
    return as_floats(value_of(kTerm, all));
  }
  HWY_INLINE FloatV operator()(FloatV x, FloatV y) const {
    TermValues<kIn + kNumbers> all = values;
    all.var[0] = x;
    all.var[1] = y;
    return as_floats(value_of(kTerm, all));
  }
};

// As number_tile of formula_tiles.h; kIn is 1 or 2.
template <class T, int kIn, int kNumbers, class Formula>
void formula_tile(const T* const* in, T* out, std::int64_t n, const double* numbers) {
  const FormulaOfVectors<kIn, kNumbers, Formula> f(numbers);
  if constexpr (kIn == 1)
    map(in[0], out, n, f);
  else
    map(in[0], in[1], out, n, f);
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
