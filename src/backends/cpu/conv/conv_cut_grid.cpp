#include "backends/cpu/conv/conv_cut_grid.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/conv/conv_images.h"
#include "backends/cpu/conv/conv_weight.h"
#include "backends/cpu/onednn.h"

namespace aloft::cpu {
namespace {

using dnnl::memory;

// Channels of a cut: the library's kernels lose nothing at 64, and a cut of 512 x 3 x 3 fits into
// the second cache.
constexpr std::int64_t kChannels = 64;
constexpr std::int64_t kLeastWeight = 1 << 20;  // elements: below, images are worth a thread each

bool is_forward(const ConvSpec& s) { return s.kind == ConvKind::Forward; }
std::int64_t produced(const ConvSpec& s) { return is_forward(s) ? s.out : s.in; }

// The convolution of one cut over all images of the bound.
OneDnnConvShape shape_of_cut(const ConvSpec& s) {
  OneDnnConvShape shape = conv_shape(s, s.images);
  (is_forward(s) ? shape.out : shape.in) = kChannels;
  return shape;
}

// The weight of a cut where it lies in the caller's.
memory::desc plain_weight(const ConvSpec& s) {
  const std::int64_t window = s.kernel_height * s.kernel_width;
  const memory::dims dims = {is_forward(s) ? kChannels : s.out, is_forward(s) ? s.in : kChannels,
                             s.kernel_height, s.kernel_width};
  return {dims, memory::data_type::f32, memory::dims{s.in * window, window, s.kernel_width, 1}};
}

class ConvCutGrid : public TeamConv {
 public:
  explicit ConvCutGrid(const ConvSpec& s);

 private:
  void run_cut(const ConvPointers& p, std::int64_t cut, std::int64_t images) const;
  void run_thread(const ConvPointers& p, std::int64_t images) const override;

  OneDnnConv conv_;
  ConvImages read_, made_;
  OneDnnReorder weight_;
  std::int64_t made_size_;  // floats of one cut of an image
  std::size_t read_at_ = 0, made_at_ = 0, weight_at_ = 0, library_at_ = 0;
};

ConvCutGrid::ConvCutGrid(const ConvSpec& s)
    : TeamConv(s),
      conv_(shape_of_cut(s), threads_),
      read_(ConvImages::Way::In, conv_.read(), s.images, threads_),
      made_(ConvImages::Way::Out, conv_.made(), s.images, threads_),
      weight_(plain_weight(s), conv_.packed().weight, threads_),
      made_size_(s.made_size() / produced(s) * kChannels) {
  read_at_ = shared_.take(conv_.read().packed.get_size());
  ScratchLayout own;
  made_at_ = own.take(conv_.made().packed.get_size());
  weight_at_ = own.take(conv_.packed().weight.get_size());
  library_at_ = own.take(std::max({conv_.scratch_bytes(), weight_.scratch_bytes(),
                                   read_.library_bytes(), made_.library_bytes()}));
  thread_bytes_ = own.bytes;
}

void ConvCutGrid::run_cut(const ConvPointers& p, std::int64_t cut, std::int64_t images) const {
  char *base = own_base(p), *library = base + library_at_;
  const std::int64_t window = spec_.kernel_height * spec_.kernel_width;
  const std::int64_t first = cut * kChannels * window * (is_forward(spec_) ? spec_.in : 1);
  weight_.run({static_cast<const float*>(p.second) + first, base + weight_at_, library});
  conv_.run_images(shared_base(p) + read_at_, base + weight_at_, base + made_at_, library,
                   static_cast<const float*>(p.bias) + (spec_.bias ? cut * kChannels : 0));
  for (std::int64_t i = 0; i < images; ++i)
    made_.run(base + made_at_ + i * made_.packed_bytes(),
              static_cast<float*>(p.result) + i * spec_.made_size() + cut * made_size_, library);
}

void ConvCutGrid::run_thread(const ConvPointers& p, std::int64_t images) const {
  const OneThread one;
  char* packed = shared_base(p) + read_at_;
  const std::size_t bytes = read_.packed_bytes();
  // Images that are missing become zeros: whatever else lies there must not be computed with.
#pragma omp for schedule(static)
  for (std::int64_t i = 0; i < spec_.images; ++i) {
    if (i < images)
      read_.run(static_cast<const float*>(p.first) + i * spec_.read_size(), packed + i * bytes,
                own_base(p) + library_at_);
    else
      std::memset(packed + i * bytes, 0, bytes);
  }
#pragma omp for schedule(dynamic, 1)
  for (std::int64_t cut = 0; cut < produced(spec_) / kChannels; ++cut) run_cut(p, cut, images);
}

}  // namespace

bool suits_cut_grid(const ConvSpec& s) {
  const std::int64_t images = s.images * (s.x_size() + s.y_size());
  return s.type == DType::F32 && s.groups == 1 && s.images > 0 && produced(s) % kChannels == 0 &&
         s.weight_size() >= kLeastWeight && 2 * s.weight_size() >= images;
}

std::unique_ptr<ConvWay> conv_cut_grid(const ConvSpec& spec) {
  return std::make_unique<ConvCutGrid>(spec);
}

}  // namespace aloft::cpu
