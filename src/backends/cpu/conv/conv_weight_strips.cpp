#include "backends/cpu/conv/conv_weight_strips.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/matmul/bf16_strip.h"
#include "backends/cpu/matmul/pack.h"
#include "backends/cpu/rounding.h"

namespace aloft::cpu {
namespace {

// Pixels of a part, of which all channels' gradients stay in a second cache.
constexpr std::int64_t kPartPixels = 2048, kPartBytes = std::int64_t{1} << 20;
constexpr std::int64_t kItemsAThread = 4, kLeastChannels = 28;

}  // namespace

bool ConvWeightStrips::suits(const ConvSpec& s) {
  const CpuFeatures& cpu = cpu_features();
  return s.type == DType::BF16 && s.groups == 1 && cpu.avx512_bf16 && !cpu.amx_bf16;
}

ConvWeightStrips::ConvWeightStrips(const ConvSpec& s) : TeamConv(s), window_(window_of(s)) {
  // A function of the shape of an image alone: parts decide the order of summation.
  const std::int64_t out = std::max<std::int64_t>(1, s.out), pixels = window_.pixels();
  const std::int64_t most = std::clamp<std::int64_t>(kPartBytes / (out * 2), 64, kPartPixels);
  rows_ = std::clamp<std::int64_t>(most / window_.out[1], 1, window_.out[0]);
  if (rows_ == window_.out[0])
    many_ = std::clamp<std::int64_t>(most / pixels, 1, std::max<std::int64_t>(1, s.images));
  unfold_ = Unfold(window_, many_, rows_);
  // Rows a power of two apart share few cache sets.
  ld_ = round_up(many_ * rows_ * window_.out[1], 2);
  if (ld_ % 512 == 0) ld_ += 32;
  const std::int64_t panels = ceil_div(window_.taps(), kStripPanel);
  sums_ld_ = panels * kStripPanel;
  splits_ = std::clamp<std::int64_t>(ceil_div(kItemsAThread * threads_, panels), 1,
                                     std::max<std::int64_t>(1, s.out / kLeastChannels));

  dy_at_ = shared_.take(s.out * ld_ * sizeof(std::uint16_t));
  if (parts(s.images) > 1) sums_at_ = shared_.take(s.out * sums_ld_ * sizeof(float));
  ScratchLayout own;
  own.take(unfold_.patch_size(kStripPanel) * sizeof(std::uint16_t));
  lines_at_ = own.take(kStripPanel * ld_ * sizeof(std::uint16_t));
  panel_at_ = own.take(ld_ * kStripPanel * sizeof(std::uint16_t));
  thread_bytes_ = own.bytes;
}

std::int64_t ConvWeightStrips::parts(std::int64_t images) const {
  return rows_ < window_.out[0] ? images * ceil_div(window_.out[0], rows_)
                                : ceil_div(images, many_);
}

ResultRows ConvWeightStrips::part_of(std::int64_t number, std::int64_t images) const {
  if (rows_ == window_.out[0]) {
    const std::int64_t image = number * many_;
    return {image, std::min(many_, images - image), 0, rows_};
  }
  const std::int64_t an_image = ceil_div(window_.out[0], rows_), row = number % an_image * rows_;
  return {number / an_image, 1, row, std::min(rows_, window_.out[0] - row)};
}

// A channel of dy, the part's pixels one behind the other, a zero behind an odd number of them.
void ConvWeightStrips::copy_gradients(const ConvPointers& p, const ResultRows& part,
                                      std::int64_t channel) const {
  const std::int64_t run = part.rows * window_.out[1];
  const auto* from = static_cast<const std::uint16_t*>(p.second) + part.row * window_.out[1];
  auto* to = reinterpret_cast<std::uint16_t*>(shared_base(p) + dy_at_) + channel * ld_;
  for (std::int64_t i = 0; i < part.images; ++i, to += run)
    std::memcpy(to, from + ((part.image + i) * spec_.out + channel) * window_.pixels(), 2 * run);
  if (part.images * run % 2) *to = 0;
}

void ConvWeightStrips::run_item(const ConvPointers& p, const Turn& turn, std::int64_t item) const {
  char *shared = shared_base(p), *own = own_base(p);
  auto *patch = reinterpret_cast<std::uint16_t*>(own),
       *lines = reinterpret_cast<std::uint16_t*>(own + lines_at_),
       *panel = reinterpret_cast<std::uint16_t*>(own + panel_at_);
  const std::int64_t taps = window_.taps(), column = item / splits_ * kStripPanel;
  const std::int64_t end = std::min(taps, column + kStripPanel);
  const std::int64_t share = ceil_div(spec_.out, splits_), row = item % splits_ * share;
  if (row >= spec_.out) return;
  const std::int64_t pixels = turn.part.images * turn.part.rows * window_.out[1];
  unfold_.cut(static_cast<const std::uint16_t*>(p.first), turn.part, column, end, patch);
  unfold_.lines(patch, turn.part, column, end, lines, ld_);
  VectorStrip s;
  s.m = std::min(share, spec_.out - row), s.n = end - column, s.k = ceil_div(pixels, 2);
  pack_panel({lines, DType::BF16, ld_, true}, pixels, s.n, 2 * s.k, PackedType::Bf16, panel, 0);
  s.a = reinterpret_cast<const std::uint32_t*>(shared + dy_at_) + row * ld_ / 2;
  s.lda = ld_ / 2;
  s.b = reinterpret_cast<const std::uint32_t*>(panel);
  float* sums = reinterpret_cast<float*>(shared + sums_at_) + row * sums_ld_ + column;
  s.ldp = sums_ld_;
  if (!turn.first) s.partial_in = sums;
  if (!turn.last) s.partial_out = sums;
  s.c = static_cast<std::uint16_t*>(p.result) + row * taps + column;
  s.c_type = DType::BF16;
  s.ldc = taps;
  run_bf16_strip(s);
}

void ConvWeightStrips::run_thread(const ConvPointers& p, std::int64_t images) const {
  const std::int64_t turns = parts(images);
  if (turns == 0) {
#pragma omp single
    std::memset(p.result, 0, spec_.out * window_.taps() * sizeof(std::uint16_t));
    return;
  }
  const std::int64_t items = sums_ld_ / kStripPanel * splits_;
  for (std::int64_t i = 0; i < turns; ++i) {
    const Turn turn{part_of(i, images), i == 0, i + 1 == turns};
#pragma omp for schedule(static)
    for (std::int64_t channel = 0; channel < spec_.out; ++channel)
      copy_gradients(p, turn.part, channel);
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t item = 0; item < items; ++item) run_item(p, turn, item);
  }
}

}  // namespace aloft::cpu
