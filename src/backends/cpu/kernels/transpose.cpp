// transpose: axes that stay neighbours are joined; then either whole runs are copied (the last axis
// stays last) or square blocks are turned in the first cache.
#include "ops/transpose.h"

#include <array>
#include <cstring>

#include "backends/cpu/axis_view.h"
#include "backends/cpu/parallel.h"

namespace aloft::cpu {
namespace {

constexpr std::int64_t kBlock = 32;

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

  void run(const RunArgs& args) override {
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
        const std::int64_t j0 = t % wide * kBlock, i0 = t / wide % tall * kBlock;
        const std::int64_t other = t / wide / tall;
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

  // dst[i][j] = src[i * si + j * sj]. Reads run along i and writes along j, through a small square.
  template <class T>
  static void block(const T* src, std::int64_t si, std::int64_t sj, T* dst, std::int64_t stride,
                    std::int64_t ni, std::int64_t nj) {
    alignas(64) T square[kBlock][kBlock];
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
