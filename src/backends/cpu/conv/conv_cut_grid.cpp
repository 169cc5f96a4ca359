#include "backends/cpu/conv/conv_cut_grid.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cpu/conv/conv_images.h"
#include "backends/cpu/conv/conv_weight.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"

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

}  // namespace

struct ConvCutGrid::State {
  ConvSpec spec;
  int threads;
  OneDnnConv conv;
  std::optional<ConvImages> taken, given;  // images that are read, and those that are written
  OneDnnReorder weight;
  std::int64_t taken_size, given_size;  // floats of an image, of one cut of an image
  std::size_t taken_at = 0, given_at = 0, weight_at = 0, library_at = 0;
  ScratchLayout shared, own;

  explicit State(const ConvSpec& s);
  void run_cut(const ConvPointers& p, std::int64_t cut, std::int64_t images) const;
  void run_thread(const ConvPointers& p, std::int64_t images) const;
  char* own_base(const ConvPointers& p) const {
    return static_cast<char*>(p.scratch) + shared.bytes + omp_get_thread_num() * own.bytes;
  }
};

ConvCutGrid::State::State(const ConvSpec& s)
    : spec(s),
      threads(std::max(1, s.threads)),
      conv(shape_of_cut(s), threads),
      weight(plain_weight(s), conv.packed().weight, threads),
      taken_size(is_forward(s) ? s.x_size() : s.y_size()),
      given_size((is_forward(s) ? s.y_size() : s.x_size()) / produced(s) * kChannels) {
  const OneThread one;
  const auto &plain = conv.plain(), &packed = conv.packed();
  const auto &plain_in = is_forward(s) ? plain.x : plain.y,
             &packed_in = is_forward(s) ? packed.x : packed.y,
             &plain_out = is_forward(s) ? plain.y : plain.x,
             &packed_out = is_forward(s) ? packed.y : packed.x;
  taken.emplace(ConvImages::Way::In, plain_in, packed_in, s.images, threads);
  given.emplace(ConvImages::Way::Out, plain_out, packed_out, s.images, threads);
  taken_at = shared.take(packed_in.get_size());
  given_at = own.take(packed_out.get_size());
  weight_at = own.take(packed.weight.get_size());
  library_at = own.take(std::max({conv.scratch_bytes(), weight.scratch_bytes(),
                                  taken->library_bytes(), given->library_bytes()}));
}

void ConvCutGrid::State::run_cut(const ConvPointers& p, std::int64_t cut,
                                 std::int64_t images) const {
  char *base = own_base(p), *library = base + library_at;
  const char* taken_images = static_cast<const char*>(p.scratch) + taken_at;
  const std::int64_t window = spec.kernel_height * spec.kernel_width;
  const std::int64_t first = cut * kChannels * window * (is_forward(spec) ? spec.in : 1);
  weight.run({static_cast<const float*>(p.second) + first, base + weight_at, library});
  if (!is_forward(spec))
    conv.run({base + given_at, base + weight_at, taken_images, library});
  else if (spec.bias)
    conv.run({taken_images, base + weight_at, base + given_at, library,
              static_cast<const float*>(p.bias) + cut * kChannels});
  else
    conv.run({taken_images, base + weight_at, base + given_at, library});
  const std::int64_t whole = given_size / kChannels * produced(spec);
  for (std::int64_t i = 0; i < images; ++i)
    given->run(base + given_at + i * given->packed_bytes(),
               static_cast<float*>(p.result) + i * whole + cut * given_size, library);
}

void ConvCutGrid::State::run_thread(const ConvPointers& p, std::int64_t images) const {
  const OneThread one;
  char* packed = static_cast<char*>(p.scratch) + taken_at;
  const std::size_t bytes = taken->packed_bytes();
  // Images that are missing become zeros: whatever else lies there must not be computed with.
#pragma omp for schedule(static)
  for (std::int64_t i = 0; i < spec.images; ++i) {
    if (i < images)
      taken->run(static_cast<const float*>(p.first) + i * taken_size, packed + i * bytes,
                 own_base(p) + library_at);
    else
      std::memset(packed + i * bytes, 0, bytes);
  }
#pragma omp for schedule(dynamic, 1)
  for (std::int64_t cut = 0; cut < produced(spec) / kChannels; ++cut) run_cut(p, cut, images);
}

bool ConvCutGrid::suits(const ConvSpec& s) {
  const std::int64_t images = s.images * (s.x_size() + s.y_size());
  return s.type == DType::F32 && s.groups == 1 && s.images > 0 && produced(s) % kChannels == 0 &&
         s.weight_size() >= kLeastWeight && 2 * s.weight_size() >= images;
}

ConvCutGrid::ConvCutGrid(const ConvSpec& spec) : state_(std::make_unique<State>(spec)) {}
ConvCutGrid::~ConvCutGrid() = default;

std::size_t ConvCutGrid::scratch_bytes() const {
  return state_->shared.bytes + state_->own.bytes * state_->threads;
}

void ConvCutGrid::run(const ConvPointers& p, std::int64_t images) const {
  const State& s = *state_;
  on_team(s.threads, [&] { s.run_thread(p, images); });
}

}  // namespace aloft::cpu
