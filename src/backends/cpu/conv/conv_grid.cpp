#include "backends/cpu/conv/conv_grid.h"

#include <algorithm>

#include "backends/cpu/conv/conv_weight.h"
#include "backends/cpu/matmul/matmul_tiling.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vectors/tiles.h"
#include "base/error.h"

namespace aloft::cpu {
namespace {

// Groups of images, so that a few threads end together; a function of the batch alone.
constexpr std::int64_t kGroups = 16;

// An operand between the caller's memory (plain, spec.type) and the library's (packed, computed).
struct Way {
  std::int64_t values = 0;  // plain
  bool widened = false;     // goes through f32
  std::unique_ptr<OneDnnReorder> reorder;
  std::size_t staged_at = 0, packed_at = 0;
};

// The convolution of a number of images.
struct Pass {
  std::int64_t images = 0;
  std::unique_ptr<OneDnnConv> conv;
  Way first, result;
  std::size_t library_at = 0;
};

class ConvGrid : public TeamConv {
 public:
  explicit ConvGrid(const ConvSpec& s);

 private:
  void prepare(Pass* pass, std::int64_t images, const OneDnnConv* like);
  Way make_way(const OneDnnConv::Images& of, std::int64_t values, bool inward,
               ScratchLayout* layout) const;
  const void* bring_in(const Way& way, const void* from, char* base, char* library) const;
  void run_pass(const Pass& pass, const ConvPointers& p, std::int64_t image) const;
  void run_thread(const ConvPointers& p, std::int64_t images) const override;

  DType computed_;
  Pass group_, single_;  // spec.images / kGroups images, and one
  std::unique_ptr<ConvWeight> weight_;
  std::size_t bias_at_ = 0;
};

ConvGrid::ConvGrid(const ConvSpec& s) : TeamConv(s), computed_(s.computed()) {
  ensure(has_tiles(s.type), "a convolution's type is a float");
  prepare(&group_, std::max<std::int64_t>(1, ceil_div(s.images, kGroups)), nullptr);
  if (group_.images > 1) prepare(&single_, 1, group_.conv.get());
  const OneDnnConv& conv = *group_.conv;
  weight_ = std::make_unique<ConvWeight>(s, conv.plain().weight, conv.packed().weight, &shared_);
  thread_bytes_ = std::max(thread_bytes_, weight_->library_bytes());
  if (s.bias) bias_at_ = shared_.take(s.out * sizeof(float));
}

// `inward`: from the caller to the library.
Way ConvGrid::make_way(const OneDnnConv::Images& of, std::int64_t values, bool inward,
                       ScratchLayout* layout) const {
  Way way;
  way.values = values;
  way.widened = spec_.type != computed_;
  if (way.widened) way.staged_at = layout->take(values * sizeof(float));
  if (of.plain == of.packed) return way;
  way.packed_at = layout->take(of.packed.get_size());
  way.reorder = inward ? std::make_unique<OneDnnReorder>(of.plain, of.packed, threads_)
                       : std::make_unique<OneDnnReorder>(of.packed, of.plain, threads_);
  return way;
}

void ConvGrid::prepare(Pass* pass, std::int64_t images, const OneDnnConv* like) {
  pass->images = images;
  pass->conv = std::make_unique<OneDnnConv>(conv_shape(spec_, images), threads_, like);
  ScratchLayout own;
  pass->first = make_way(pass->conv->read(), images * spec_.read_size(), true, &own);
  pass->result = make_way(pass->conv->made(), images * spec_.made_size(), false, &own);
  std::size_t library = pass->conv->scratch_bytes();
  for (const Way* way : {&pass->first, &pass->result})
    if (way->reorder) library = std::max(library, way->reorder->scratch_bytes());
  pass->library_at = own.take(library);
  thread_bytes_ = std::max(thread_bytes_, own.bytes);
}

// Where the library finds the operand at `from`.
const void* ConvGrid::bring_in(const Way& way, const void* from, char* base, char* library) const {
  if (way.widened) {
    auto* staged = reinterpret_cast<float*>(base + way.staged_at);
    widen(spec_.type, from, staged, way.values);
    from = staged;
  }
  if (!way.reorder) return from;
  way.reorder->run({from, base + way.packed_at, library});
  return base + way.packed_at;
}

void ConvGrid::run_pass(const Pass& pass, const ConvPointers& p, std::int64_t image) const {
  char *base = own_base(p), *library = base + pass.library_at, *shared = shared_base(p);
  const void* first =
      bring_in(pass.first, at(p.first, image * spec_.read_size(), spec_.type), base, library);
  const Way& out = pass.result;
  const void* w = weight_->packed(p.second, shared);
  void* target = at(p.result, image * spec_.made_size(), spec_.type);
  void* plain = out.widened ? static_cast<void*>(base + out.staged_at) : target;
  void* packed = out.reorder ? static_cast<void*>(base + out.packed_at) : plain;
  pass.conv->run_images(first, w, packed, library, shared + bias_at_);
  if (out.reorder) out.reorder->run({packed, plain, library});
  if (out.widened) narrow(static_cast<const float*>(plain), spec_.type, target, out.values);
}

void ConvGrid::run_thread(const ConvPointers& p, std::int64_t images) const {
  const OneThread one;
  char* shared = shared_base(p);
#pragma omp for schedule(static) nowait
  for (std::int64_t i = 0; i < weight_->pieces(); ++i)
    weight_->bring_in(i, p.second, shared, own_base(p));
#pragma omp single
  if (spec_.bias) widen(spec_.type, p.bias, reinterpret_cast<float*>(shared + bias_at_), spec_.out);
  const std::int64_t groups = images / group_.images;
#pragma omp for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < groups + images % group_.images; ++i) {
    if (i < groups)
      run_pass(group_, p, i * group_.images);
    else
      run_pass(single_, p, groups * group_.images + (i - groups));
  }
}

}  // namespace

std::unique_ptr<ConvWay> conv_grid(const ConvSpec& spec) {
  return std::make_unique<ConvGrid>(spec);
}

}  // namespace aloft::cpu
