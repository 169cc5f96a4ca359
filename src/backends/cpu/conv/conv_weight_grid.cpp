#include "backends/cpu/conv/conv_weight_grid.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "backends/cpu/conv/conv_images.h"
#include "backends/cpu/conv/conv_weight.h"
#include "backends/cpu/matmul/matmul_tiling.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/vectors/tiles.h"
#include "base/error.h"

namespace aloft::cpu {
namespace {

// Cells of the grid: a few a thread. Cuts repay fewer groups, whose sums are memory to go through.
constexpr std::int64_t kCells = 16, kCellsOfCuts = 8;
// Sums of all groups together stay below this.
constexpr std::int64_t kSumBytes = 20 << 20;
constexpr std::int64_t kMostCuts = 8;
constexpr std::int64_t kAddRun = 4096;

// Output channels of a cell: the library's kernels lose nothing at 64 in f32, at 128 in bf16.
std::int64_t channels_of_cell(const ConvSpec& s) {
  const std::int64_t least = s.computed() == DType::BF16 ? 128 : 64;
  if (s.groups != 1 || s.out % least != 0) return s.out;
  std::int64_t cuts = std::min(kMostCuts, s.out / least);
  while (s.out / least % cuts != 0) --cuts;
  return s.out / cuts;
}

// Taps of the window, row by row, that lie in the padding wherever the window stands.
std::vector<std::int64_t> taps_beside_images(const ConvSpec& s) {
  const auto meets = [](std::int64_t extent, std::int64_t windows, std::int64_t stride,
                        std::int64_t first) {
    for (std::int64_t i = 0; i < windows; ++i)
      if (const std::int64_t at = i * stride + first; at >= 0 && at < extent) return true;
    return false;
  };
  std::vector<std::int64_t> beside;
  for (std::int64_t r = 0; r < s.kernel_height; ++r)
    for (std::int64_t c = 0; c < s.kernel_width; ++c)
      if (!meets(s.height, s.out_height, s.stride[0], r * s.dilation[0] - s.padding[0]) ||
          !meets(s.width, s.out_width, s.stride[1], c * s.dilation[1] - s.padding[1]))
        beside.push_back(r * s.kernel_width + c);
  return beside;
}

class ConvWeightGrid : public TeamConv {
 public:
  explicit ConvWeightGrid(const ConvSpec& s);

 private:
  void run_thread(const ConvPointers& p, std::int64_t images) const override;
  void bring_in(const ConvImages& way, const void* from, std::int64_t stride, std::int64_t values,
                std::int64_t count, char* packed, char* base) const;
  void run_cell(const ConvPointers& p, std::int64_t cut, std::int64_t group,
                std::int64_t images) const;
  float* sums(const ConvPointers& p, std::int64_t cut, std::int64_t group) const {
    return reinterpret_cast<float*>(shared_base(p) + sums_at_) +
           (group * cuts_ + cut) * packed_weight_;
  }
  void add_groups(const ConvPointers& p, std::int64_t count) const;
  void write_cut(const ConvPointers& p, std::int64_t cut, bool zero) const;

  DType computed_;
  std::vector<std::int64_t> beside_;
  std::int64_t channels_, cuts_, per_group_, groups_;
  std::unique_ptr<OneDnnConv> conv_;
  std::unique_ptr<OneDnnReorder> unpack_;
  std::optional<ConvImages> x_, dy_;
  std::int64_t x_values_ = 0, dy_values_ = 0;  // of an image, of a cut of an image
  std::size_t x_at_ = 0, dy_at_ = 0;
  std::int64_t packed_weight_ = 0;  // floats of a cell's sums
  std::size_t sums_at_ = 0, wide_at_ = 0, staged_at_ = 0, library_at_ = 0;
};

ConvWeightGrid::ConvWeightGrid(const ConvSpec& s)
    : TeamConv(s), computed_(s.computed()), beside_(taps_beside_images(s)) {
  ensure(has_tiles(s.type), "a convolution's type is a float");
  channels_ = channels_of_cell(s);
  cuts_ = s.out / channels_;
  const std::int64_t images = std::max<std::int64_t>(1, s.images);
  const std::int64_t fit = kSumBytes / static_cast<std::int64_t>(s.weight_size() * sizeof(float));
  groups_ =
      std::clamp<std::int64_t>(std::min(cuts_ > 1 ? kCellsOfCuts / cuts_ : kCells, fit), 1, images);
  per_group_ = ceil_div(images, groups_);
  groups_ = ceil_div(images, per_group_);

  OneDnnConvShape shape = conv_shape(s, per_group_);
  shape.out = channels_;
  conv_ = std::make_unique<OneDnnConv>(shape, threads_);
  const auto& packed = conv_->packed();
  x_.emplace(ConvImages::Way::In, conv_->inputs(), per_group_, threads_);
  dy_.emplace(ConvImages::Way::In, conv_->results(), per_group_, threads_);
  x_values_ = s.x_size(), dy_values_ = s.y_size() / cuts_;
  unpack_ = std::make_unique<OneDnnReorder>(packed.weight, conv_->plain().weight, threads_);

  packed_weight_ =
      static_cast<std::int64_t>(round_up(packed.weight.get_size(), 64) / sizeof(float));
  sums_at_ = shared_.take(cuts_ * groups_ * packed_weight_ * sizeof(float));
  if (s.type != DType::F32) wide_at_ = shared_.take(s.weight_size() * sizeof(float));
  ScratchLayout own;
  x_at_ = own.take(packed.x.get_size());
  dy_at_ = own.take(packed.y.get_size());
  if (s.type != computed_) staged_at_ = own.take(std::max(x_values_, dy_values_) * sizeof(float));
  library_at_ = own.take(std::max({conv_->scratch_bytes(), unpack_->scratch_bytes(),
                                   x_->library_bytes(), dy_->library_bytes()}));
  thread_bytes_ = own.bytes;
}

// `count` images, `stride` elements apart; the group's missing ones become zeros.
void ConvWeightGrid::bring_in(const ConvImages& way, const void* from, std::int64_t stride,
                              std::int64_t values, std::int64_t count, char* packed,
                              char* base) const {
  for (std::int64_t i = 0; i < count; ++i) {
    const void* image = at(from, i * stride, spec_.type);
    if (spec_.type != computed_) {
      auto* staged = reinterpret_cast<float*>(base + staged_at_);
      widen(spec_.type, image, staged, values);
      image = staged;
    }
    way.run(image, packed + i * way.packed_bytes(), base + library_at_);
  }
  std::memset(packed + count * way.packed_bytes(), 0, (per_group_ - count) * way.packed_bytes());
}

void ConvWeightGrid::run_cell(const ConvPointers& p, std::int64_t cut, std::int64_t group,
                              std::int64_t images) const {
  char* base = own_base(p);
  const std::int64_t first = group * per_group_, count = std::min(per_group_, images - first);
  bring_in(*x_, at(p.first, first * x_values_, spec_.type), x_values_, x_values_, count,
           base + x_at_, base);
  bring_in(*dy_, at(p.second, first * spec_.y_size() + cut * dy_values_, spec_.type),
           spec_.y_size(), dy_values_, count, base + dy_at_, base);
  conv_->run({base + x_at_, sums(p, cut, group), base + dy_at_, base + library_at_});
}

// Adds groups 1, 2 ... to group 0, in order.
void ConvWeightGrid::add_groups(const ConvPointers& p, std::int64_t count) const {
  const std::int64_t n = cuts_ * packed_weight_;
  float* to = sums(p, 0, 0);
#pragma omp for schedule(static)
  for (std::int64_t i0 = 0; i0 < n; i0 += kAddRun) {
    const std::int64_t end = std::min(n, i0 + kAddRun);
    for (std::int64_t g = 1; g < count; ++g)
      for (std::int64_t i = i0; i < end; ++i) to[i] += to[g * n + i];
  }
}

// The channels of a cut, from the library's layout into the caller's.
void ConvWeightGrid::write_cut(const ConvPointers& p, std::int64_t cut, bool zero) const {
  const std::int64_t n = spec_.weight_size() / cuts_;
  void* result = at(p.result, cut * n, spec_.type);
  if (zero) {
    std::memset(result, 0, n * size_of(spec_.type));
    return;
  }
  void* plain =
      spec_.type == DType::F32 ? result : shared_base(p) + wide_at_ + cut * n * sizeof(float);
  unpack_->run({sums(p, cut, 0), plain, own_base(p) + library_at_});
  // The library multiplies the padding, and an infinite gradient by it is NaN.
  if (!beside_.empty()) {
    auto* values = static_cast<float*>(plain);
    for (std::int64_t i = 0; i < n; i += spec_.kernel_height * spec_.kernel_width)
      for (const std::int64_t tap : beside_) values[i + tap] = 0;
  }
  if (plain != result) narrow(static_cast<const float*>(plain), spec_.type, result, n);
}

void ConvWeightGrid::run_thread(const ConvPointers& p, std::int64_t images) const {
  const OneThread one;
  const std::int64_t there = ceil_div(images, per_group_);
#pragma omp for schedule(dynamic, 1)
  for (std::int64_t cell = 0; cell < there * cuts_; ++cell) {
    run_cell(p, cell % cuts_, cell / cuts_, images);
    if (groups_ == 1) write_cut(p, cell, false);  // while its sums are in the cache
  }
  if (groups_ == 1 && there == 1) return;
  if (there > 1) add_groups(p, there);
#pragma omp for schedule(static)
  for (std::int64_t cut = 0; cut < cuts_; ++cut) write_cut(p, cut, there == 0);
}

}  // namespace

std::unique_ptr<ConvWay> conv_weight_grid(const ConvSpec& spec) {
  return std::make_unique<ConvWeightGrid>(spec);
}

}  // namespace aloft::cpu
