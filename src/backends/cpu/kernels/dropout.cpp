// dropout: a tile of random words beside a tile of elements; element i uses word i % 4 of block
// i / 4, so that chunks, which start on multiples of 4, need nothing from one another.
#include "ops/dropout.h"

#include "backends/cpu/parallel.h"
#include "backends/cpu/random_words.h"
#include "backends/cpu/tiles.h"
#include "runtime/kernel.h"
#include "scalar/philox.h"

namespace aloft::cpu {
namespace {

// 1 / (1 - p) or 0 for elements [begin, begin + n); begin is a multiple of 4.
template <class T>
void factors_of(const scalar::RandomKey& key, std::uint32_t threshold, T factor, std::int64_t begin,
                std::int64_t n, T* out) {
  alignas(64) std::uint32_t words[kTile];
  random_words(key, static_cast<std::uint64_t>(begin), n, words);
  for (std::int64_t i = 0; i < n; ++i) out[i] = words[i] >> 8 >= threshold ? factor : T{0};
}

// A dropped infinity or NaN becomes 0 too, which a product would not give.
template <class T>
void select(const T* x, const T* factors, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = factors[i] != T{0} ? x[i] * factors[i] : T{0};
}

class Dropout : public Prepared {
 public:
  explicit Dropout(const CallSpec& call)
      : attrs_(from_attrs<DropoutAttrs>(call.attrs)),
        dtype_(call.out[0].dtype),
        numel_(extent_of(call.out[0].shape.numel(), call)) {}

  void run(const RunArgs& args) override {
    const auto* state = static_cast<const std::int64_t*>(args.in[1]);
    const auto word = [&](int i) { return static_cast<std::uint64_t>(state[i]); };
    const scalar::RandomKey key{word(0), word(1), word(2), static_cast<std::uint64_t>(attrs_.key)};
    constexpr std::int64_t kCost = 4;
    parallel_for(numel_.at(args.symbols), kCost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; i += kTile) {
        const std::int64_t n = std::min(kTile, end - i);
        const void* x = at(args.in[0], i, dtype_);
        void* y = at(args.out[0], i, dtype_);
        if (dtype_ == DType::F64)
          tile_f64(key, i, n, static_cast<const double*>(x), static_cast<double*>(y));
        else
          tile_f32(key, i, n, x, y);
      }
    });
  }

 private:
  void tile_f64(const scalar::RandomKey& key, std::int64_t begin, std::int64_t n, const double* x,
                double* y) const {
    double factors[kTile];
    factors_of(key, attrs_.threshold(), 1 / (1 - attrs_.p), begin, n, factors);
    select(x, factors, y, n);
  }
  void tile_f32(const scalar::RandomKey& key, std::int64_t begin, std::int64_t n, const void* x,
                void* y) const {
    float factors[kTile], values[kTile];
    factors_of(key, attrs_.threshold(), static_cast<float>(1 / (1 - attrs_.p)), begin, n, factors);
    widen(dtype_, x, values, n);
    select(values, factors, values, n);
    narrow(values, dtype_, y, n);
  }

  DropoutAttrs attrs_;
  DType dtype_;
  Extent numel_;
};

}  // namespace

std::vector<Kernel> dropout_kernels() {
  return {{"cpu.dropout", "dropout", always,
           [](const CallSpec& call) -> std::unique_ptr<Prepared> {
             return std::make_unique<Dropout>(call);
           },
           [](const CallSpec&) {
             return std::vector<std::pair<int, int>>{{0, 0}};
           }}};
}

}  // namespace aloft::cpu
