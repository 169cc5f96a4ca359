// transpose: axes that stay neighbours are joined; then either whole runs are copied (the last axis
// stays last) or square blocks are turned in the first cache.
#include "ops/transpose.h"

#include <array>
#include <cstring>
#include <utility>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/axis_view.h"

namespace aloft::cpu {
namespace {

constexpr std::int64_t kBlock = 32;
constexpr std::int64_t kGroup = 8;

// Vectors of 16 bytes, which every processor has; squares of as many rows as a vector has lanes are
// turned in registers.
template <class T>
struct Lanes {
  static constexpr int kCount = 16 / sizeof(T);
  typedef T Vector __attribute__((vector_size(16)));  // NOLINT(modernize-use-using)

  // The lower (or upper) halves of a and b, lane by lane in turns.
  template <int kFirst, int... kLane>
  static Vector interleave(Vector a, Vector b, std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(a, b, (kLane % 2 ? kCount + kLane / 2 : kLane / 2) + kFirst...);
  }
  // dst[i][j] = src[j][i]. Each round is a perfect shuffle of all elements: as many rounds as
  // an index has bits turn the square.
  static void turn(const T* src, std::int64_t src_stride, T* dst, std::int64_t dst_stride) {
    constexpr auto lanes = std::make_integer_sequence<int, kCount>();
    Vector a[kCount], b[kCount];
    // Unrolled by order: at -O2 the compiler would keep the vectors in memory.
#pragma GCC unroll 16
    for (int j = 0; j < kCount; ++j) std::memcpy(&a[j], src + j * src_stride, sizeof a[j]);
#pragma GCC unroll 4
    for (int round = 1; round < kCount; round *= 2) {
#pragma GCC unroll 8
      for (int k = 0; k < kCount / 2; ++k) {
        b[2 * k] = interleave<0>(a[k], a[k + kCount / 2], lanes);
        b[2 * k + 1] = interleave<kCount / 2>(a[k], a[k + kCount / 2], lanes);
      }
#pragma GCC unroll 16
      for (int k = 0; k < kCount; ++k) a[k] = b[k];
    }
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) std::memcpy(dst + i * dst_stride, &a[i], sizeof a[i]);
  }
};

class Transpose : public Prepared {
 public:
  explicit Transpose(const CallSpec& call) : size_(size_of(call.out[0].dtype)) {
    const auto a = from_attrs<TransposeAttrs>(call.attrs);
    const Shape& in = call.in[0].shape;
    const int rank = in.rank();
    // Strides of the input for each output axis. The extent of the outermost input axis never
    // enters a stride, so a symbol in it may be bound later.
    for (int d = 0; d < rank; ++d) {
      const int axis = normal_axis(a.perm[d], rank);
      if (in[axis] == Dim(1)) continue;
      std::int64_t stride = 1;
      for (int later = axis + 1; later < rank; ++later) stride *= in[later].max();
      const bool joins =
          count_ > 0 && strides_[count_ - 1] == stride * in[axis].max() && in[axis].is_constant();
      if (joins) {
        extents_[count_ - 1] = extents_[count_ - 1] * in[axis];
        strides_[count_ - 1] = stride;
      } else {
        extents_[count_] = in[axis];
        strides_[count_++] = stride;
      }
    }
    if (count_ == 0) {
      extents_[count_] = 1;
      strides_[count_++] = 1;
    }
    for (int d = 0; d < count_; ++d) bound_[d] = extent_of(extents_[d], call);
  }

  void run(const RunArgs& args) const override {
    std::array<std::int64_t, kMaxAxes> n{};
    for (int d = 0; d < count_; ++d) n[d] = bound_[d].at(args.symbols);
    for (int d = 0; d < count_; ++d)
      if (n[d] == 0) return;
    if (strides_[count_ - 1] == 1)
      copy_runs(args, n);
    else if (size_ == 1)
      turn<std::uint8_t>(args, n);
    else if (size_ == 2)
      turn<std::uint16_t>(args, n);
    else if (size_ == 4)
      turn<std::uint32_t>(args, n);
    else
      turn<std::uint64_t>(args, n);
  }

 private:
  // The input's element for index `row` of the output's axes [0, last), skipping axis `skip`.
  std::int64_t offset(const std::array<std::int64_t, kMaxAxes>& n, std::int64_t row, int last,
                      int skip) const {
    std::int64_t at = 0;
    for (int d = last - 1; d >= 0; --d) {
      if (d == skip) continue;
      at += row % n[d] * strides_[d];
      row /= n[d];
    }
    return at;
  }

  void copy_runs(const RunArgs& args, const std::array<std::int64_t, kMaxAxes>& n) const {
    const int last = count_ - 1;
    std::int64_t rows = 1;
    for (int d = 0; d < last; ++d) rows *= n[d];
    const auto run = static_cast<std::size_t>(n[last]) * size_;
    const auto* in = static_cast<const char*>(args.in[0]);
    auto* out = static_cast<char*>(args.out[0]);
    const auto cost = static_cast<std::int64_t>(run / 8 + 4);
    parallel_for(rows, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        std::memcpy(out + r * run, in + offset(n, r, last, -1) * size_, run);
    });
  }

  // Output axis `fast` walks the input with stride 1; blocks span it and the output's last axis.
  template <class T>
  void turn(const RunArgs& args, const std::array<std::int64_t, kMaxAxes>& n) const {
    const int last = count_ - 1;
    int fast = 0;
    for (int d = 0; d < last; ++d)
      if (strides_[d] < strides_[fast]) fast = d;
    std::int64_t others = 1, out_stride = n[last];
    for (int d = 0; d < last; ++d)
      if (d != fast) others *= n[d];
    for (int d = fast + 1; d < last; ++d) out_stride *= n[d];
    const std::int64_t tall = (n[fast] + kBlock - 1) / kBlock;
    const std::int64_t wide = (n[last] + kBlock - 1) / kBlock;
    const auto* in = static_cast<const T*>(args.in[0]);
    auto* out = static_cast<T*>(args.out[0]);
    parallel_for(others * tall * wide, kBlock * kBlock, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t other = t / (wide * tall), inside = t % (wide * tall);
        // kGroup blocks along the input's rows, then those behind them along the output's.
        const std::int64_t group = inside / (kGroup * wide) * kGroup;
        const std::int64_t width = std::min(kGroup, tall - group), at = inside - group * wide;
        const std::int64_t i0 = (group + at % width) * kBlock, j0 = at / width * kBlock;
        const T* src =
            in + offset(n, other, last, fast) + i0 * strides_[fast] + j0 * strides_[last];
        T* dst = out + out_offset(n, other, last, fast) + i0 * out_stride + j0;
        block(src, strides_[fast], strides_[last], dst, out_stride, std::min(kBlock, n[fast] - i0),
              std::min(kBlock, n[last] - j0));
      }
    });
  }

  std::int64_t out_offset(const std::array<std::int64_t, kMaxAxes>& n, std::int64_t row, int last,
                          int skip) const {
    std::int64_t at = 0, stride = n[last];
    for (int d = last - 1; d >= 0; --d) {
      if (d != skip) {
        at += row % n[d] * stride;
        row /= n[d];
      }
      stride *= n[d];
    }
    return at;
  }

  // dst[i][j] = src[i * si + j * sj], through a small square.
  template <class T>
  static void block(const T* src, std::int64_t si, std::int64_t sj, T* dst, std::int64_t stride,
                    std::int64_t ni, std::int64_t nj) {
    constexpr std::int64_t kLanes = Lanes<T>::kCount;
    alignas(64) T square[kBlock][kBlock];
    if (si == 1 && ni == kBlock && nj == kBlock) {
      for (std::int64_t j = 0; j < kBlock; j += kLanes)
        for (std::int64_t i = 0; i < kBlock; i += kLanes)
          Lanes<T>::turn(src + i + j * sj, sj, &square[i][j], kBlock);
      for (std::int64_t i = 0; i < kBlock; ++i)
        std::memcpy(dst + i * stride, square[i], sizeof square[i]);
      return;
    }
    for (std::int64_t j = 0; j < nj; ++j)
      for (std::int64_t i = 0; i < ni; ++i) square[i][j] = src[i * si + j * sj];
    for (std::int64_t i = 0; i < ni; ++i) std::memcpy(dst + i * stride, square[i], nj * sizeof(T));
  }

  std::size_t size_;
  int count_ = 0;
  std::array<Dim, kMaxAxes> extents_;
  std::array<Extent, kMaxAxes> bound_;
  std::array<std::int64_t, kMaxAxes> strides_{};
};

}  // namespace

std::vector<Kernel> transpose_kernels() {
  return {{"cpu.transpose", "transpose", at_most_max_axes, prepare_as<Transpose>}};
}

}  // namespace aloft::cpu
