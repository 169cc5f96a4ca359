#include "backends/cpu/conv/conv_weight.h"

#include <algorithm>

#include "backends/cpu/vectors/tiles.h"

namespace aloft::cpu {
namespace {

using dnnl::memory;

constexpr std::int64_t kMostPieces = 8;
// Channels that no layout of the library cuts.
constexpr std::int64_t kBlock = 64;

std::int64_t pieces_of(const ConvSpec& s) {
  if (s.groups != 1 || s.out % kBlock != 0) return 1;
  std::int64_t n = std::min(kMostPieces, s.out / kBlock);
  while (s.out / kBlock % n != 0) --n;
  return n;
}

memory::desc channels(const memory::desc& all, std::int64_t first, std::int64_t count) {
  memory::dims dims = all.dims(), from(dims.size(), 0);
  dims[0] = count;
  from[0] = first;
  return all.submemory_desc(dims, from);
}

}  // namespace

OneDnnConvShape conv_shape(const ConvSpec& spec, std::int64_t images) {
  using Kind = OneDnnConvShape::Kind;
  OneDnnConvShape shape;
  shape.kind = spec.kind == ConvKind::Forward     ? Kind::Forward
               : spec.kind == ConvKind::GradInput ? Kind::GradInput
                                                  : Kind::GradWeight;
  shape.images = images, shape.in = spec.in, shape.out = spec.out, shape.groups = spec.groups;
  shape.height = spec.height, shape.width = spec.width;
  shape.kernel_height = spec.kernel_height, shape.kernel_width = spec.kernel_width;
  shape.out_height = spec.out_height, shape.out_width = spec.out_width;
  for (int d = 0; d < 2; ++d) {
    shape.stride[d] = spec.stride[d];
    shape.padding[d] = spec.padding[d];
    shape.dilation[d] = spec.dilation[d];
  }
  shape.type = spec.computed(), shape.bias = spec.bias;
  return shape;
}

ConvWeight::ConvWeight(const ConvSpec& spec, const memory::desc& plain, const memory::desc& packed,
                       ScratchLayout* layout)
    : spec_(spec), widened_(spec.type != spec.computed()), reordered_(plain != packed) {
  if (widened_) staged_at_ = layout->take(spec.weight_size() * sizeof(float));
  if (reordered_) packed_at_ = layout->take(packed.get_size());
  if (!widened_ && !reordered_) return;
  const std::int64_t count = reordered_ ? pieces_of(spec) : 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const OneThread one;
    const std::int64_t n = spec.out / count;
    if (count == 1)
      pieces_.emplace_back(plain, packed, spec.threads);
    else
      pieces_.emplace_back(channels(plain, i * n, n), channels(packed, i * n, n), spec.threads);
  }
}

std::size_t ConvWeight::library_bytes() const {
  std::size_t most = 0;
  for (const OneDnnReorder& p : pieces_) most = std::max(most, p.scratch_bytes());
  return most;
}

void ConvWeight::bring_in(std::int64_t i, const void* from, char* shared, char* library) const {
  const std::int64_t n = spec_.weight_size() / pieces();
  if (widened_) {
    auto* staged = reinterpret_cast<float*>(shared + staged_at_);
    widen(spec_.type, at(from, i * n, spec_.type), staged + i * n, n);
    from = staged;
  }
  if (reordered_) pieces_[i].run({from, shared + packed_at_, library});
}

const void* ConvWeight::packed(const void* from, const char* shared) const {
  if (reordered_) return shared + packed_at_;
  return widened_ ? shared + staged_at_ : from;
}

}  // namespace aloft::cpu
