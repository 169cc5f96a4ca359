// where: elements are moved whole, whatever their type.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/where.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/elements/elementwise.h"
#include "backends/cpu/elements/operands.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Unsigned integers of an element's size stand for its type.
template <class T>
void choose(const void* condition, const void* a, const void* b, void* out, std::int64_t n) {
  const auto* c = static_cast<const std::uint8_t*>(condition);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  T* o = static_cast<T*>(out);
  std::int64_t i = 0;
  if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes) {
      const auto bytes = hn::LoadU(hn::Rebind<std::uint8_t, decltype(d)>(), c + i);
      const auto is_else = hn::Eq(hn::PromoteTo(d, bytes), hn::Zero(d));
      hn::StoreU(hn::IfThenElse(is_else, hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, o + i);
    }
  }
  for (; i < n; ++i) o[i] = c[i] ? x[i] : y[i];
}

using Choose = void (*)(const void*, const void*, const void*, void*, std::int64_t);
Choose choose_of(std::size_t size) {
  if (size == 1) return choose<std::uint8_t>;
  if (size == 2) return choose<std::uint16_t>;
  return size == 4 ? choose<std::uint32_t> : choose<std::uint64_t>;
}

// In a loop the condition is a number of the tile's type.
void choose_tile_f32(const float* const* in, float* out, std::int64_t n, const double*) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto is_else = hn::Eq(hn::LoadU(d, in[0] + i), hn::Zero(d));
    hn::StoreU(hn::IfThenElse(is_else, hn::LoadU(d, in[2] + i), hn::LoadU(d, in[1] + i)), d,
               out + i);
  }
  for (; i < n; ++i) out[i] = in[0][i] != 0 ? in[1][i] : in[2][i];
}
TileF32 choose_function() { return choose_tile_f32; }

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {
namespace {

HWY_EXPORT(choose_of);
HWY_EXPORT(choose_function);

void choose_tile_f64(const double* const* in, double* out, std::int64_t n, const double*) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = in[0][i] != 0 ? in[1][i] : in[2][i];
}

class Where : public Prepared, public TileOp {
 public:
  explicit Where(const CallSpec& call) : operands_(call), dtype_(call.out[0].dtype) {}

  void run(const RunArgs& args) const override {
    const auto choose = HWY_DYNAMIC_DISPATCH(choose_of)(size_of(dtype_));
    parallel_for(operands_.numel(args), 1, [&](std::int64_t begin, std::int64_t end) {
      Reader reader(operands_, args);
      while (begin < end) {
        const std::int64_t n = operands_.tile_at(begin, end);
        const void *c = reader.raw(0, begin, n), *a = reader.raw(1, begin, n),
                   *b = reader.raw(2, begin, n);
        choose(c, a, b, at(args.out[0], begin, dtype_), n);
        begin += n;
      }
    });
  }

  const LoopPart* loop_part() const override { return this; }
  ElementwiseCode tile_code() const override {
    return {HWY_DYNAMIC_DISPATCH(choose_function)(), choose_tile_f64};
  }

 private:
  Operands operands_;
  DType dtype_;
};

}  // namespace

std::vector<Kernel> where_kernels() {
  return {{"cpu.where", "where", always, prepare_as<Where>, same_type_pairs}};
}

}  // namespace aloft::cpu
#endif  // HWY_ONCE
