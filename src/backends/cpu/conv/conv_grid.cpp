#include "backends/cpu/conv/conv_grid.h"

#include <omp.h>

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

}  // namespace

struct ConvGrid::State {
  ConvSpec spec;
  DType computed;
  int threads;
  Pass group, single;  // spec.images / kGroups images, and one
  ScratchLayout shared;
  std::unique_ptr<ConvWeight> weight;
  std::size_t bias_at = 0, thread_bytes = 0;

  explicit State(const ConvSpec& s);
  void prepare(Pass* pass, std::int64_t images, const OneDnnConv* like);
  Way make_way(const dnnl::memory::desc& plain, const dnnl::memory::desc& packed,
               std::int64_t values, bool inward, ScratchLayout* layout) const;
  const void* bring_in(const Way& way, const void* from, char* base, char* library) const;
  void run_pass(const Pass& pass, const ConvPointers& p, std::int64_t image) const;
  void run_thread(const ConvPointers& p, std::int64_t images) const;
  char* thread_base(const ConvPointers& p) const {
    return static_cast<char*>(p.scratch) + shared.bytes + omp_get_thread_num() * thread_bytes;
  }
};

ConvGrid::State::State(const ConvSpec& s)
    : spec(s), computed(s.computed()), threads(std::max(1, s.threads)) {
  ensure(has_tiles(s.type), "a convolution's type is a float");
  prepare(&group, std::max<std::int64_t>(1, ceil_div(s.images, kGroups)), nullptr);
  if (group.images > 1) prepare(&single, 1, group.conv.get());
  const OneDnnConv& conv = *group.conv;
  weight = std::make_unique<ConvWeight>(s, conv.plain().weight, conv.packed().weight, &shared);
  thread_bytes = std::max(thread_bytes, weight->library_bytes());
  if (s.bias) bias_at = shared.take(s.out * sizeof(float));
}

// `inward`: from the caller to the library.
Way ConvGrid::State::make_way(const dnnl::memory::desc& plain, const dnnl::memory::desc& packed,
                              std::int64_t values, bool inward, ScratchLayout* layout) const {
  Way way;
  way.values = values;
  way.widened = spec.type != computed;
  if (way.widened) way.staged_at = layout->take(values * sizeof(float));
  if (plain == packed) return way;
  way.packed_at = layout->take(packed.get_size());
  way.reorder = inward ? std::make_unique<OneDnnReorder>(plain, packed, threads)
                       : std::make_unique<OneDnnReorder>(packed, plain, threads);
  return way;
}

void ConvGrid::State::prepare(Pass* pass, std::int64_t images, const OneDnnConv* like) {
  pass->images = images;
  pass->conv = std::make_unique<OneDnnConv>(conv_shape(spec, images), threads, like);
  const auto &plain = pass->conv->plain(), &packed = pass->conv->packed();
  const std::int64_t x = images * spec.x_size(), y = images * spec.y_size();
  ScratchLayout own;
  if (spec.kind == ConvKind::Forward) {
    pass->first = make_way(plain.x, packed.x, x, true, &own);
    pass->result = make_way(plain.y, packed.y, y, false, &own);
  } else {
    pass->first = make_way(plain.y, packed.y, y, true, &own);
    pass->result = make_way(plain.x, packed.x, x, false, &own);
  }
  std::size_t library = pass->conv->scratch_bytes();
  for (const Way* way : {&pass->first, &pass->result})
    if (way->reorder) library = std::max(library, way->reorder->scratch_bytes());
  pass->library_at = own.take(library);
  thread_bytes = std::max(thread_bytes, own.bytes);
}

// Where the library finds the operand at `from`.
const void* ConvGrid::State::bring_in(const Way& way, const void* from, char* base,
                                      char* library) const {
  if (way.widened) {
    auto* staged = reinterpret_cast<float*>(base + way.staged_at);
    widen(spec.type, from, staged, way.values);
    from = staged;
  }
  if (!way.reorder) return from;
  way.reorder->run({from, base + way.packed_at, library});
  return base + way.packed_at;
}

void ConvGrid::State::run_pass(const Pass& pass, const ConvPointers& p, std::int64_t image) const {
  char *base = thread_base(p), *library = base + pass.library_at;
  char* shared_base = static_cast<char*>(p.scratch);
  const bool grad_input = spec.kind == ConvKind::GradInput;
  const std::int64_t first_size = grad_input ? spec.y_size() : spec.x_size();
  const std::int64_t result_size = grad_input ? spec.x_size() : spec.y_size();
  const void* first =
      bring_in(pass.first, at(p.first, image * first_size, spec.type), base, library);
  const Way& out = pass.result;
  const void* w = weight->packed(p.second, shared_base);
  void* target = at(p.result, image * result_size, spec.type);
  void* plain = out.widened ? static_cast<void*>(base + out.staged_at) : target;
  void* packed = out.reorder ? static_cast<void*>(base + out.packed_at) : plain;
  if (grad_input)
    pass.conv->run({packed, w, first, library});
  else if (spec.bias)
    pass.conv->run({first, w, packed, library, shared_base + bias_at});
  else
    pass.conv->run({first, w, packed, library});
  if (out.reorder) out.reorder->run({packed, plain, library});
  if (out.widened) narrow(static_cast<const float*>(plain), spec.type, target, out.values);
}

void ConvGrid::State::run_thread(const ConvPointers& p, std::int64_t images) const {
  const OneThread one;
  char* shared_base = static_cast<char*>(p.scratch);
#pragma omp for schedule(static) nowait
  for (std::int64_t i = 0; i < weight->pieces(); ++i)
    weight->bring_in(i, p.second, shared_base, thread_base(p));
#pragma omp single
  if (spec.bias)
    widen(spec.type, p.bias, reinterpret_cast<float*>(shared_base + bias_at), spec.out);
  const std::int64_t groups = images / group.images;
#pragma omp for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < groups + images % group.images; ++i) {
    if (i < groups)
      run_pass(group, p, i * group.images);
    else
      run_pass(single, p, groups * group.images + (i - groups));
  }
}

ConvGrid::ConvGrid(const ConvSpec& spec) : state_(std::make_unique<State>(spec)) {}
ConvGrid::~ConvGrid() = default;

std::size_t ConvGrid::scratch_bytes() const {
  return state_->shared.bytes + state_->thread_bytes * state_->threads;
}

void ConvGrid::run(const ConvPointers& p, std::int64_t images) const {
  const State& s = *state_;
  on_team(s.threads, [&] { s.run_thread(p, images); });
}

}  // namespace aloft::cpu
