// sort: places are sorted by the values they name, ties by place, which makes the order stable and
// needs no memory but the result. argsort and top_k run through their bodies.
#include "ops/sort.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/axis_view.h"
#include "backends/cpu/vectors/tiles.h"
#include "scalar/float_formats.h"

namespace aloft::cpu {
namespace {

class Sort : public Prepared {
 public:
  explicit Sort(const CallSpec& call)
      : attrs_(from_attrs<SortAttrs>(call.attrs)),
        view_(call.in[0].shape, attrs_.axis, call),
        numel_(call.out[0].shape.max_numel()),
        dtype_(call.in[0].dtype) {}

  // Rows that do not lie densely are sorted beside.
  std::size_t scratch_bytes() const override {
    return view_.inner == 1 ? 0 : numel_ * sizeof(std::int32_t);
  }

  void run(const RunArgs& args) const override {
    switch (dtype_) {
      case DType::F64:
        return sort<double>(args);
      case DType::F32:
        return sort<float>(args);
      case DType::BF16:
        return sort<scalar::Bf16>(args);
      case DType::F16:
        return sort<scalar::F16>(args);
      case DType::I64:
        return sort<std::int64_t>(args);
      case DType::I32:
        return sort<std::int32_t>(args);
      case DType::I8:
        return sort<std::int8_t>(args);
      default:
        return sort<std::uint8_t>(args);
    }
  }

 private:
  static float key(scalar::Bf16 x) { return scalar::f32_of(x); }
  static float key(scalar::F16 x) { return scalar::f32_of(x); }
  template <class T>
  static T key(T x) {
    return x;
  }
  // A total order with NaN behind everything.
  template <class K>
  static bool comes_before(K a, K b) {
    if constexpr (std::is_floating_point_v<K>)
      if (std::isnan(b)) return !std::isnan(a);
    return a < b;
  }

  template <class T>
  void sort(const RunArgs& args) const {
    const std::int64_t n = view_.length.at(args.symbols), inner = view_.inner;
    const std::int64_t rows = view_.outer.at(args.symbols) * inner;
    const auto cost = static_cast<std::int64_t>(4 * std::log2(n + 2)) * n;
    parallel_for(rows, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) sort_row<T>(args, row, n, inner);
    });
  }

  template <class T>
  void sort_row(const RunArgs& args, std::int64_t row, std::int64_t n, std::int64_t inner) const {
    const std::int64_t from = row / inner * n * inner + row % inner;
    const T* x = static_cast<const T*>(args.in[0]) + from;
    T* values = static_cast<T*>(args.out[0]) + from;
    std::int32_t* places = static_cast<std::int32_t*>(args.out[1]) + from;
    std::int32_t* order = inner == 1 ? places : static_cast<std::int32_t*>(args.scratch) + row * n;
    std::iota(order, order + n, 0);
    const bool down = attrs_.descending;
    std::sort(order, order + n, [=](std::int32_t i, std::int32_t j) {
      const auto a = key(x[i * inner]), b = key(x[j * inner]);
      if (down ? comes_before(b, a) : comes_before(a, b)) return true;
      if (down ? comes_before(a, b) : comes_before(b, a)) return false;
      return i < j;
    });
    for (std::int64_t k = 0; k < n; ++k) {
      values[k * inner] = x[order[k] * inner];
      places[k * inner] = order[k];
    }
  }

  SortAttrs attrs_;
  AxisView view_;
  std::int64_t numel_;
  DType dtype_;
};

std::optional<Refusal> accepts(const CallSpec& call) {
  const Shape& shape = call.in[0].shape;
  const int axis = normal_axis(from_attrs<SortAttrs>(call.attrs).axis, shape.rank());
  if (shape[axis].max() > INT32_MAX) return Refusal{"places do not fit into i32"};
  return std::nullopt;
}

}  // namespace

std::vector<Kernel> sort_kernels() { return {{"cpu.sort", "sort", accepts, prepare_as<Sort>}}; }

}  // namespace aloft::cpu
