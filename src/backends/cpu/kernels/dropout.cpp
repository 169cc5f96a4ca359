// dropout: a tile of random words beside a tile of elements; element i uses word i % 4 of block
// i / 4, so that chunks, which start on multiples of 4, need nothing from one another. A step of
// fused loops too, which begin anywhere.
#include "ops/dropout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/dropout.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>

#include "backends/cpu/elements/elementwise.h"
#include "backends/cpu/elements/random_words.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// y = x factor where the word's upper 24 bits reach the threshold, else 0, whatever x is. A mask
// and no branch, which would be mispredicted at random. p: factor, threshold.
void drop_f32(const float* x, const std::uint32_t* words, float* y, std::int64_t n,
              const double* p) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const FloatV factor = hn::Set(d, static_cast<float>(p[0]));
  const auto below = hn::Set(di, static_cast<std::int32_t>(p[1]) - 1);
  const auto kept = [&](FloatV v, const std::uint32_t* w) HWY_ATTR {
    const hn::RebindToUnsigned<Floats> du;
    const auto bits = hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(du, w)));
    return hn::IfThenElseZero(hn::RebindMask(d, hn::Gt(bits, below)), hn::Mul(v, factor));
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(d, kept(load(d, x + i), words + i), y + i);
  if (i < n) store_n(d, kept(load_n(d, x + i, n - i), words + i), y + i, n - i);
}

DrawnF32 drop_tile() { return drop_f32; }

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {
namespace {

HWY_EXPORT(drop_tile);

void drop_f64(const double* x, const std::uint32_t* words, double* y, std::int64_t n,
              const double* p) {
  const auto threshold = static_cast<std::uint32_t>(p[1]);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t keeps = words[i] >> 8 >= threshold ? ~std::uint64_t{0} : 0;
    y[i] = std::bit_cast<double>(std::bit_cast<std::uint64_t>(x[i] * p[0]) & keeps);
  }
}

ElementwiseCode code_of(const DropoutAttrs& a) {
  ElementwiseCode code{.cost = 4};
  code.drawn_f32 = HWY_DYNAMIC_DISPATCH(drop_tile)();
  code.drawn_f64 = drop_f64;
  code.key = a.key;
  code.numbers = {1 / (1 - a.p), static_cast<double>(a.threshold())};
  return code;
}

class Dropout : public Prepared, public TileOp {
 public:
  explicit Dropout(const CallSpec& call)
      : code_(code_of(from_attrs<DropoutAttrs>(call.attrs))),
        dtype_(call.out[0].dtype),
        numel_(extent_of(call.out[0].shape.numel(), call)) {}

  const LoopPart* loop_part() const override { return this; }
  ElementwiseCode tile_code() const override { return code_; }

  void run(const RunArgs& args) const override {
    const scalar::RandomKey key = random_key(args.in[1], code_.key);
    parallel_for(numel_.at(args.symbols), code_.cost, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) std::uint32_t words[kTile];
      for (std::int64_t i = begin; i < end; i += kTile) {
        const std::int64_t n = std::min(kTile, end - i);
        random_words(key, static_cast<std::uint64_t>(i), n, words);
        const void* x = at(static_cast<const void*>(args.in[0]), i, dtype_);
        void* y = at(args.out[0], i, dtype_);
        if (dtype_ == DType::F64)
          code_.drawn_f64(static_cast<const double*>(x), words, static_cast<double*>(y), n,
                          code_.numbers.data());
        else
          tile_f32(x, words, y, n);
      }
    });
  }

 private:
  void tile_f32(const void* x, const std::uint32_t* words, void* y, std::int64_t n) const {
    alignas(64) float wide[kTile], result[kTile];
    const float* in = open_f32(dtype_, x, wide, n);
    float* out = dtype_ == DType::F32 ? static_cast<float*>(y) : result;
    code_.drawn_f32(in, words, out, n, code_.numbers.data());
    close_f32(dtype_, out, y, n);
  }

  ElementwiseCode code_;
  DType dtype_;
  Extent numel_;
};

std::optional<Refusal> accepts(const CallSpec& call) {
  const double p = from_attrs<DropoutAttrs>(call.attrs).p;
  if (p >= 0 && p < 1) return std::nullopt;
  return Refusal{"p is not in [0, 1)"};
}

}  // namespace

std::vector<Kernel> dropout_kernels() {
  return {{"cpu.dropout", "dropout", accepts, prepare_as<Dropout>, [](const CallSpec&) {
             return std::vector<std::pair<int, int>>{{0, 0}};
           }}};
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
