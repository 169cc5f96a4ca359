// gather, take, scatter_add, index_add. Reads copy whole elements; additions run along the indices
// in order, each thread on columns of its own, in f32 for 16-bit types.
#include "ops/gather.h"

#include <cstring>
#include <limits>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/axis_view.h"
#include "backends/cpu/vectors/integer_tiles.h"
#include "backends/cpu/vectors/tiles.h"
#include "scalar/integers.h"

namespace aloft::cpu {
namespace {

// Columns that one task adds into.
constexpr std::int64_t kColumns = 256;

struct Ids {
  const void* p;
  DType dtype;
  // Element i, or -1 where it is no index of an axis of length n.
  std::int64_t at(std::int64_t i, std::int64_t n) const {
    std::int64_t id = 0;
    switch (dtype) {
      case DType::I64:
        id = static_cast<const std::int64_t*>(p)[i];
        break;
      case DType::I32:
        id = static_cast<const std::int32_t*>(p)[i];
        break;
      case DType::I8:
        // NOLINTNEXTLINE(bugprone-signed-char-misuse): an i8 is a number, and may be negative
        id = static_cast<std::int64_t>(static_cast<const std::int8_t*>(p)[i]);
        break;
      default:
        id = static_cast<const std::uint8_t*>(p)[i];
        break;
    }
    return id >= 0 && id < n ? id : -1;
  }
};

// kPerElement: ids has an entry for each element (gather), else one for each slice (take).
template <bool kPerElement>
class Read : public Prepared {
 public:
  explicit Read(const CallSpec& call)
      : x_(call.in[0].shape, from_attrs<GatherAttrs>(call.attrs).axis, call),
        ids_(extent_of(call.in[1].shape.numel(), call)),
        numel_(extent_of(call.out[0].shape.numel(), call)),
        dtype_(call.in[0].dtype),
        ids_dtype_(call.in[1].dtype) {
    if (kPerElement)
      ids_ = AxisView(call.in[1].shape, from_attrs<GatherAttrs>(call.attrs).axis, call).length;
    const double nothing = is_float(dtype_) ? std::numeric_limits<double>::quiet_NaN() : 0.0;
    close_f64(dtype_, &nothing, nothing_, 1);
    if (dtype_ == DType::F64) std::memcpy(nothing_, &nothing, sizeof nothing);
  }

  void run(const RunArgs& args) const override {
    const std::int64_t n = x_.length.at(args.symbols), m = ids_.at(args.symbols);
    const std::int64_t inner = x_.inner;
    const std::size_t size = size_of(dtype_);
    const Ids ids{args.in[1], ids_dtype_};
    const auto* in = static_cast<const char*>(args.in[0]);
    auto* out = static_cast<char*>(args.out[0]);
    if (numel_.at(args.symbols) == 0) return;
    const std::int64_t slices = numel_.at(args.symbols) / inner;
    parallel_for(slices, kPerElement ? 4 * inner : inner / 4 + 4,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t s = begin; s < end; ++s) {
                     const std::int64_t o = s / m;
                     if (!kPerElement) {
                       const std::int64_t k = ids.at(s % m, n);
                       copy(out + s * inner * size,
                            k < 0 ? nullptr : in + (o * n + k) * inner * size, inner, size);
                       continue;
                     }
                     for (std::int64_t i = 0; i < inner; ++i) {
                       const std::int64_t k = ids.at(s * inner + i, n);
                       copy(out + (s * inner + i) * size,
                            k < 0 ? nullptr : in + ((o * n + k) * inner + i) * size, 1, size);
                     }
                   }
                 });
  }

 private:
  void copy(char* to, const char* from, std::int64_t n, std::size_t size) const {
    if (from != nullptr) {
      std::memcpy(to, from, n * size);
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * size, nothing_, size);
  }

  AxisView x_;
  Extent ids_, numel_;
  DType dtype_, ids_dtype_;
  alignas(8) char nothing_[8] = {};
};

template <bool kPerElement>
class Add : public Prepared {
 public:
  explicit Add(const CallSpec& call)
      : y_(call.out[0].shape, from_attrs<GatherAttrs>(call.attrs).axis, call),
        updates_(call.in[2].shape, from_attrs<GatherAttrs>(call.attrs).axis, call),
        numel_(extent_of(call.out[0].shape.numel(), call)),
        bound_(call.out[0].shape.max_numel()),
        dtype_(call.out[0].dtype),
        ids_dtype_(call.in[1].dtype) {}

  // 16-bit results are summed in f32 here and rounded once, narrow integers in 64 bits.
  std::size_t scratch_bytes() const override {
    if (is_direct()) return 0;
    return bound_ * (is_low(dtype_) ? sizeof(float) : sizeof(double));
  }

  void run(const RunArgs& args) const override {
    if (dtype_ == DType::F32 || is_low(dtype_))
      sums<float>(args);
    else if (is_integer(dtype_))
      sums<std::int64_t>(args);
    else
      sums<double>(args);
  }

 private:
  // Sums are made in the result's own memory.
  bool is_direct() const {
    return dtype_ == DType::F32 || dtype_ == DType::F64 || dtype_ == DType::I64;
  }

  template <class T>
  void sums(const RunArgs& args) const {
    T* sum = static_cast<T*>(is_direct() ? args.out[0] : args.scratch);
    const std::int64_t numel = numel_.at(args.symbols);
    parallel_for(numel, 1, [&](std::int64_t begin, std::int64_t end) {
      const void* into = args.in[0];
      for (std::int64_t i = begin; i < end; i += kTile) {
        const std::int64_t m = std::min(kTile, end - i);
        const T* x = open<T>(at(into, i, dtype_), sum + i, m);
        if (x != sum + i) std::memcpy(sum + i, x, m * sizeof(T));
      }
    });
    add<T>(args, sum);
    if (is_direct()) return;
    parallel_for(numel, 1, [&](std::int64_t begin, std::int64_t end) {
      if constexpr (std::is_same_v<T, float>)
        close_f32(dtype_, sum + begin, at(args.out[0], begin, dtype_), end - begin);
      else if constexpr (std::is_same_v<T, std::int64_t>)
        close_i64(dtype_, sum + begin, at(args.out[0], begin, dtype_), end - begin);
      else
        close_f64(dtype_, sum + begin, at(args.out[0], begin, dtype_), end - begin);
    });
  }

  static void add_to(std::int64_t& sum, std::int64_t x) { sum = scalar::wrapping_add(sum, x); }
  template <class T>
  static void add_to(T& sum, T x) {
    sum += x;
  }

  template <class T>
  const T* open(const void* p, T* buffer, std::int64_t n) const {
    if constexpr (std::is_same_v<T, float>)
      return open_f32(dtype_, p, buffer, n);
    else if constexpr (std::is_same_v<T, std::int64_t>)
      return open_i64(dtype_, p, buffer, n);
    else
      return open_f64(dtype_, p, buffer, n);
  }

  template <class T>
  void add(const RunArgs& args, T* sum) const {
    const std::int64_t outer = y_.outer.at(args.symbols), n = y_.length.at(args.symbols);
    const std::int64_t m = updates_.length.at(args.symbols), inner = y_.inner;
    const std::int64_t blocks = (inner + kColumns - 1) / kColumns;
    const Ids ids{args.in[1], ids_dtype_};
    parallel_for(outer * blocks, m * std::min(inner, kColumns),
                 [&](std::int64_t begin, std::int64_t end) {
                   alignas(64) T buffer[kColumns];
                   for (std::int64_t t = begin; t < end; ++t) {
                     const std::int64_t c0 = t % blocks * kColumns, o = t / blocks;
                     const std::int64_t columns = std::min(kColumns, inner - c0);
                     for (std::int64_t j = 0; j < m; ++j) {
                       const std::int64_t from = (o * m + j) * inner + c0;
                       const void* p = args.in[2];
                       const T* x = open<T>(at(p, from, dtype_), buffer, columns);
                       for (std::int64_t c = 0; c < columns; ++c) {
                         const std::int64_t k = ids.at(kPerElement ? from + c : j, n);
                         if (k >= 0) add_to(sum[(o * n + k) * inner + c0 + c], x[c]);
                       }
                     }
                   }
                 });
  }

  AxisView y_, updates_;
  Extent numel_;
  std::int64_t bound_;
  DType dtype_, ids_dtype_;
};

std::vector<std::pair<int, int>> in_place(const CallSpec&) { return {{0, 0}}; }

}  // namespace

std::vector<Kernel> gather_kernels() {
  return {{"cpu.gather", "gather", always, prepare_as<Read<true>>},
          {"cpu.take", "take", always, prepare_as<Read<false>>},
          {"cpu.scatter_add", "scatter_add", always, prepare_as<Add<true>>, in_place},
          {"cpu.index_add", "index_add", always, prepare_as<Add<false>>, in_place}};
}

}  // namespace aloft::cpu
