// grad_stats, and grad_squares and grad_verdict, its parts: one read of all gradients. Each piece
// is summed by itself, then pieces are added in a fixed order: the same bits on any number of
// threads. No sum of squares of finite f32 overflows a double, so a piece's sum tells whether all
// its elements are finite.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/grad_stats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstdint>

#include "backends/cpu/update/squares-inl.h"
#include "types/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

double squares_of(DType type, const void* p, std::int64_t n) {
  if (type == DType::F32) return sum_of_squares(static_cast<const float*>(p), n);
  if (type == DType::BF16) return sum_of_squares(static_cast<const scalar::Bf16*>(p), n);
  return sum_of_squares(static_cast<const scalar::F16*>(p), n);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <utility>
#include <vector>

#include "backends/cpu/parallel.h"
#include "backends/cpu/update/pieces.h"
#include "backends/cpu/vectors/tiles.h"
#include "ops/grad_stats.h"
#include "runtime/kernel.h"
#include "scalar/gradient_verdict.h"

namespace aloft::cpu {
namespace {

HWY_EXPORT(squares_of);

constexpr std::int64_t kChunk = 32768;

// The sum of squares of each of some gradients. Pieces depend on a gradient's own size alone, and
// their sums are added gradient by gradient: the same bits whichever gradients come together.
class Squares {
 public:
  explicit Squares(std::span<const TensorType> gradients) {
    std::vector<std::int64_t> sizes;
    for (const TensorType& t : gradients) {
      sizes.push_back(t.shape.max_numel());
      types_.push_back(t.dtype);
    }
    pieces_ = Pieces(sizes, kChunk);
  }

  std::size_t count() const { return types_.size(); }
  std::size_t scratch_bytes() const { return pieces_.all().size() * sizeof(double); }

  // `sums` receives count() numbers.
  void run(std::span<void* const> gradients, void* scratch, double* sums) const {
    auto* partial = static_cast<double*>(scratch);
    for_each_chunk(pieces_.chunks(), [&](std::int64_t chunk) {
      for (std::size_t i = pieces_.first(chunk); i < pieces_.first(chunk + 1); ++i) {
        const Piece& p = pieces_.all()[i];
        const DType type = types_[p.tensor];
        partial[i] = HWY_DYNAMIC_DISPATCH(squares_of)(
            type, at(static_cast<const void*>(gradients[p.tensor]), p.begin, type), p.count);
      }
    });
    std::size_t piece = 0;
    for (std::size_t g = 0; g < types_.size(); ++g) {
      double sum = 0;
      for (; piece < pieces_.all().size() && pieces_.all()[piece].tensor == static_cast<int>(g);
           ++piece)
        sum += partial[piece];
      sums[g] = sum;
    }
  }

 private:
  std::vector<DType> types_;
  Pieces pieces_;
};

void put(const scalar::GradientVerdict& v, const RunArgs& args) {
  *static_cast<float*>(args.out[0]) = static_cast<float>(v.norm);
  *static_cast<float*>(args.out[1]) = static_cast<float>(v.multiplier);
  *static_cast<std::int32_t*>(args.out[2]) = v.finite;
  *static_cast<std::int32_t*>(args.out[3]) = v.culprit;
}

class GradStatsKernel : public Prepared {
 public:
  explicit GradStatsKernel(const CallSpec& call)
      : attrs_(from_attrs<GradStatsAttrs>(call.attrs)), squares_(std::span(call.in).subspan(1)) {}

  std::size_t scratch_bytes() const override {
    return squares_.scratch_bytes() + squares_.count() * sizeof(double);
  }
  void run(const RunArgs& args) const override {
    auto* sums = static_cast<double*>(args.scratch);
    squares_.run(args.in.subspan(1), sums + squares_.count(), sums);
    put(scalar::judge_gradients(
            static_cast<int>(squares_.count()), [&](int i) { return sums[i]; },
            *static_cast<const float*>(args.in[0]), attrs_.clip_norm, attrs_.sought),
        args);
  }

 private:
  GradStatsAttrs attrs_;
  Squares squares_;
};

class GradSquaresKernel : public Prepared {
 public:
  explicit GradSquaresKernel(const CallSpec& call) : squares_(call.in) {}
  std::size_t scratch_bytes() const override { return squares_.scratch_bytes(); }
  void run(const RunArgs& args) const override {
    squares_.run(args.in, args.scratch, static_cast<double*>(args.out[0]));
  }

 private:
  Squares squares_;
};

class GradVerdictKernel : public Prepared {
 public:
  explicit GradVerdictKernel(const CallSpec& call)
      : attrs_(from_attrs<GradStatsAttrs>(call.attrs)) {
    for (std::size_t i = 1; i < call.in.size(); ++i)
      for (std::int64_t k = 0; k < call.in[i].shape.max_numel(); ++k)
        places_.emplace_back(static_cast<int>(i), k);
  }
  void run(const RunArgs& args) const override {
    const auto sum = [&](int i) {
      const auto [operand, k] = places_[i];
      return static_cast<const double*>(args.in[operand])[k];
    };
    put(scalar::judge_gradients(static_cast<int>(places_.size()), sum,
                                *static_cast<const float*>(args.in[0]), attrs_.clip_norm,
                                attrs_.sought),
        args);
  }

 private:
  GradStatsAttrs attrs_;
  std::vector<std::pair<int, std::int64_t>> places_;  // of sum i: operand, element
};

template <class K>
Kernel kernel_of(const char* name, const char* op) {
  return {name, op, always, [](const CallSpec& call) -> std::unique_ptr<Prepared> {
            return std::make_unique<K>(call);
          }};
}

}  // namespace

std::vector<Kernel> grad_stats_kernels() {
  return {kernel_of<GradStatsKernel>("cpu.grad_stats", "grad_stats"),
          kernel_of<GradSquaresKernel>("cpu.grad_squares", "grad_squares"),
          kernel_of<GradVerdictKernel>("cpu.grad_verdict", "grad_verdict")};
}

}  // namespace aloft::cpu
#endif
