#include "backends/cpu/conv/conv_weight_grid.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cpu/conv/conv_images.h"
#include "backends/cpu/conv/conv_weight.h"
#include "backends/cpu/matmul/matmul_tiling.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
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

}  // namespace

struct ConvWeightGrid::State {
  ConvSpec spec;
  DType computed;
  int threads;
  std::int64_t channels, cuts, per_group, groups;
  std::unique_ptr<OneDnnConv> conv;
  std::unique_ptr<OneDnnReorder> unpack;
  std::optional<ConvImages> x, dy;
  std::int64_t x_values = 0, dy_values = 0;  // of an image, of a cut of an image
  std::size_t x_at = 0, dy_at = 0;
  std::int64_t packed_weight = 0;  // floats of a cell's sums
  std::size_t sums_at = 0, wide_at = 0, unpack_at = 0, staged_at = 0, library_at = 0;
  ScratchLayout shared, own;

  explicit State(const ConvSpec& s);
  void run_thread(const ConvPointers& p, std::int64_t images) const;
  void bring_in(const ConvImages& way, const void* from, std::int64_t stride, std::int64_t values,
                std::int64_t count, char* packed, char* base) const;
  void run_cell(const ConvPointers& p, std::int64_t cut, std::int64_t group,
                std::int64_t images) const;
  float* sums(const ConvPointers& p, std::int64_t cut, std::int64_t group) const {
    return reinterpret_cast<float*>(static_cast<char*>(p.scratch) + sums_at) +
           (group * cuts + cut) * packed_weight;
  }
  void add_groups(const ConvPointers& p, std::int64_t count) const;
  void write_cut(const ConvPointers& p, std::int64_t cut, bool zero) const;
};

ConvWeightGrid::State::State(const ConvSpec& s)
    : spec(s), computed(s.computed()), threads(std::max(1, s.threads)) {
  ensure(has_tiles(s.type), "a convolution's type is a float");
  channels = channels_of_cell(s);
  cuts = s.out / channels;
  const std::int64_t images = std::max<std::int64_t>(1, s.images);
  const std::int64_t fit = kSumBytes / static_cast<std::int64_t>(s.weight_size() * sizeof(float));
  groups =
      std::clamp<std::int64_t>(std::min(cuts > 1 ? kCellsOfCuts / cuts : kCells, fit), 1, images);
  per_group = ceil_div(images, groups);
  groups = ceil_div(images, per_group);

  OneDnnConvShape shape = conv_shape(s, per_group);
  shape.out = channels;
  conv = std::make_unique<OneDnnConv>(shape, threads);
  const auto &plain = conv->plain(), &packed = conv->packed();
  x.emplace(ConvImages::Way::In, plain.x, packed.x, per_group, threads);
  dy.emplace(ConvImages::Way::In, plain.y, packed.y, per_group, threads);
  x_values = s.x_size(), dy_values = s.y_size() / cuts;
  unpack = std::make_unique<OneDnnReorder>(packed.weight, plain.weight, threads);

  packed_weight = static_cast<std::int64_t>(round_up(packed.weight.get_size(), 64) / sizeof(float));
  sums_at = shared.take(cuts * groups * packed_weight * sizeof(float));
  if (s.type != DType::F32) wide_at = shared.take(s.weight_size() * sizeof(float));
  x_at = own.take(packed.x.get_size());
  dy_at = own.take(packed.y.get_size());
  if (s.type != computed) staged_at = own.take(std::max(x_values, dy_values) * sizeof(float));
  library_at = own.take(std::max(
      {conv->scratch_bytes(), unpack->scratch_bytes(), x->library_bytes(), dy->library_bytes()}));
}

// `count` images, `stride` elements apart; the group's missing ones become zeros.
void ConvWeightGrid::State::bring_in(const ConvImages& way, const void* from, std::int64_t stride,
                                     std::int64_t values, std::int64_t count, char* packed,
                                     char* base) const {
  for (std::int64_t i = 0; i < count; ++i) {
    const void* image = at(from, i * stride, spec.type);
    if (spec.type != computed) {
      auto* staged = reinterpret_cast<float*>(base + staged_at);
      widen(spec.type, image, staged, values);
      image = staged;
    }
    way.run(image, packed + i * way.packed_bytes(), base + library_at);
  }
  std::memset(packed + count * way.packed_bytes(), 0, (per_group - count) * way.packed_bytes());
}

void ConvWeightGrid::State::run_cell(const ConvPointers& p, std::int64_t cut, std::int64_t group,
                                     std::int64_t images) const {
  const int thread = omp_get_thread_num();
  char* base = static_cast<char*>(p.scratch) + shared.bytes + thread * own.bytes;
  const std::int64_t first = group * per_group, count = std::min(per_group, images - first);
  bring_in(*x, at(p.first, first * x_values, spec.type), x_values, x_values, count, base + x_at,
           base);
  bring_in(*dy, at(p.second, first * spec.y_size() + cut * dy_values, spec.type), spec.y_size(),
           dy_values, count, base + dy_at, base);
  conv->run({base + x_at, sums(p, cut, group), base + dy_at, base + library_at});
}

// Adds groups 1, 2 ... to group 0, in order.
void ConvWeightGrid::State::add_groups(const ConvPointers& p, std::int64_t count) const {
  const std::int64_t n = cuts * packed_weight;
  float* to = sums(p, 0, 0);
#pragma omp for schedule(static)
  for (std::int64_t i0 = 0; i0 < n; i0 += kAddRun) {
    const std::int64_t end = std::min(n, i0 + kAddRun);
    for (std::int64_t g = 1; g < count; ++g)
      for (std::int64_t i = i0; i < end; ++i) to[i] += to[g * n + i];
  }
}

// The channels of a cut, from the library's layout into the caller's.
void ConvWeightGrid::State::write_cut(const ConvPointers& p, std::int64_t cut, bool zero) const {
  const int thread = omp_get_thread_num();
  const std::int64_t n = spec.weight_size() / cuts;
  void* result = at(p.result, cut * n, spec.type);
  if (zero) {
    std::memset(result, 0, n * size_of(spec.type));
    return;
  }
  char* scratch = static_cast<char*>(p.scratch);
  void* plain = spec.type == DType::F32 ? result : scratch + wide_at + cut * n * sizeof(float);
  unpack->run({sums(p, cut, 0), plain, scratch + shared.bytes + thread * own.bytes + library_at});
  if (plain != result) narrow(static_cast<const float*>(plain), spec.type, result, n);
}

void ConvWeightGrid::State::run_thread(const ConvPointers& p, std::int64_t images) const {
  const OneThread one;
  const std::int64_t there = ceil_div(images, per_group);
#pragma omp for schedule(dynamic, 1)
  for (std::int64_t cell = 0; cell < there * cuts; ++cell) {
    run_cell(p, cell % cuts, cell / cuts, images);
    if (groups == 1) write_cut(p, cell, false);  // while its sums are in the cache
  }
  if (groups == 1 && there == 1) return;
  if (there > 1) add_groups(p, there);
#pragma omp for schedule(static)
  for (std::int64_t cut = 0; cut < cuts; ++cut) write_cut(p, cut, there == 0);
}

ConvWeightGrid::ConvWeightGrid(const ConvSpec& spec) : state_(std::make_unique<State>(spec)) {}
ConvWeightGrid::~ConvWeightGrid() = default;

std::size_t ConvWeightGrid::scratch_bytes() const {
  return state_->shared.bytes + state_->own.bytes * state_->threads;
}

void ConvWeightGrid::run(const ConvPointers& p, std::int64_t images) const {
  const State& s = *state_;
  on_team(s.threads, [&] { s.run_thread(p, images); });
}

}  // namespace aloft::cpu
