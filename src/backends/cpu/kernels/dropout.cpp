// dropout: a tile of random words beside a tile of elements; element i uses word i % 4 of block
// i / 4, so that chunks, which start on multiples of 4, need nothing from one another.
#include "ops/dropout.h"

#include <bit>

#include "backends/cpu/parallel.h"
#include "backends/cpu/random_words.h"
#include "backends/cpu/tiles.h"
#include "runtime/kernel.h"
#include "scalar/philox.h"

namespace aloft::cpu {
namespace {

// y = x / (1 - p) or 0 for elements [begin, begin + n); begin is a multiple of 4. A mask and no
// branch, which would be mispredicted at random; a dropped infinity or NaN becomes 0 too.
template <class T, class Bits>
void drop(const scalar::RandomKey& key, std::uint32_t threshold, T factor, std::int64_t begin,
          std::int64_t n, const T* x, T* y) {
  static_assert(sizeof(T) == sizeof(Bits));
  alignas(64) std::uint32_t words[kTile];
  random_words(key, static_cast<std::uint64_t>(begin), n, words);
  for (std::int64_t i = 0; i < n; ++i) {
    const Bits keeps = words[i] >> 8 >= threshold ? ~Bits{0} : Bits{0};
    y[i] = std::bit_cast<T>(std::bit_cast<Bits>(x[i] * factor) & keeps);
  }
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
    drop<double, std::uint64_t>(key, attrs_.threshold(), 1 / (1 - attrs_.p), begin, n, x, y);
  }
  void tile_f32(const scalar::RandomKey& key, std::int64_t begin, std::int64_t n, const void* x,
                void* y) const {
    alignas(64) float wide[kTile], result[kTile];
    const float* in = open_f32(dtype_, x, wide, n);
    drop<float, std::uint32_t>(key, attrs_.threshold(), static_cast<float>(1 / (1 - attrs_.p)),
                               begin, n, in, result);
    narrow(result, dtype_, y, n);
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
