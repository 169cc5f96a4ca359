#include "backends/cpu/conv_grid.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/isa.h"
#include "backends/cpu/matmul_tiling.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/tiles.h"
#include "base/error.h"

namespace aloft::cpu {
namespace {

constexpr std::size_t kLine = 64;
// Groups of images, so that a few threads end together; a function of the batch alone.
constexpr std::int64_t kGroups = 16;
// Weight gradients of this many groups are kept apart, then added in order.
constexpr std::int64_t kSlots = 8;
constexpr std::int64_t kAddRun = 4096;

// An operand between the caller's memory (plain, spec.type) and the library's (packed, computed).
struct Way {
  std::int64_t values = 0;  // plain
  bool widened = false;     // goes through f32
  std::unique_ptr<OneDnnReorder> reorder;
  std::vector<OneDnnCall> calls;  // [thread], where there is a reorder
  std::size_t staged_at = 0, packed_at = 0;
};

// The convolution of a number of images.
struct Pass {
  std::int64_t images = 0;
  std::unique_ptr<OneDnnConv> conv;
  std::vector<OneDnnCall> calls;  // [thread]
  Way first, second, result;      // second: GradWeight only
  std::size_t library_at = 0;
};

}  // namespace

struct ConvGrid::State {
  ConvSpec spec;
  DType computed = DType::F32;
  int threads = 1;
  Pass group, single;  // spec.images / kGroups images, and one
  Way weight;          // Forward, GradInput: once a run, by one thread
  std::size_t weight_library_at = 0, bias_at = 0, slots_at = 0, sum_at = 0;
  std::size_t shared_bytes = 0, thread_bytes = 0;

  explicit State(const ConvSpec& s);
  void prepare(Pass* pass, std::int64_t images, const OneDnnConv* like);
  Way make_way(const dnnl::memory::desc& plain, const dnnl::memory::desc& packed,
               std::int64_t values, bool inward, bool f32, std::size_t* bytes);
  std::size_t take(std::size_t* bytes, std::size_t size) const {
    const std::size_t at = *bytes;
    *bytes = round_up(*bytes + size, kLine);
    return at;
  }
  const void* bring_in(Way& way, const void* from, char* base, char* library, int thread) const;
  void run_pass(Pass& pass, const ConvPointers& p, std::int64_t image, float* slot);
  void run_thread(const ConvPointers& p, std::int64_t images);
  void add_slots(const ConvPointers& p, std::int64_t count, bool first, bool last);
  char* thread_base(const ConvPointers& p) const {
    return static_cast<char*>(p.scratch) + shared_bytes + omp_get_thread_num() * thread_bytes;
  }
  float* sums(const ConvPointers& p) const {
    return spec.type == DType::F32
               ? static_cast<float*>(p.result)
               : reinterpret_cast<float*>(static_cast<char*>(p.scratch) + sum_at);
  }
};

ConvGrid::State::State(const ConvSpec& s) : spec(s), threads(std::max(1, s.threads)) {
  ensure(has_tiles(s.type), "a convolution's type is a float");
  if (s.type == DType::BF16 && cpu_features().avx512_bf16) computed = DType::BF16;
  prepare(&group, std::max<std::int64_t>(1, ceil_div(s.images, kGroups)), nullptr);
  if (group.images > 1) prepare(&single, 1, group.conv.get());
  if (s.kind == ConvKind::GradWeight) {
    slots_at = take(&shared_bytes, kSlots * s.weight_size() * sizeof(float));
    if (s.type != DType::F32) sum_at = take(&shared_bytes, s.weight_size() * sizeof(float));
    return;
  }
  const OneDnnConv& conv = *group.conv;
  weight = make_way(conv.plain().weight, conv.packed().weight, s.weight_size(), true, false,
                    &shared_bytes);
  weight_library_at = take(&shared_bytes, weight.reorder ? weight.reorder->scratch_bytes() : 0);
  if (s.bias) bias_at = take(&shared_bytes, s.out * sizeof(float));
}

// `inward`: from the caller to the library; `f32`: the caller's side is already f32.
Way ConvGrid::State::make_way(const dnnl::memory::desc& plain, const dnnl::memory::desc& packed,
                              std::int64_t values, bool inward, bool f32, std::size_t* bytes) {
  Way way;
  way.values = values;
  way.widened = !f32 && spec.type != computed;
  if (way.widened) way.staged_at = take(bytes, values * sizeof(float));
  if (plain == packed) return way;
  way.packed_at = take(bytes, packed.get_size());
  way.reorder = inward ? std::make_unique<OneDnnReorder>(plain, packed)
                       : std::make_unique<OneDnnReorder>(packed, plain);
  for (int t = 0; t < threads; ++t) way.calls.push_back(way.reorder->call());
  return way;
}

void ConvGrid::State::prepare(Pass* pass, std::int64_t images, const OneDnnConv* like) {
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
  shape.type = computed, shape.bias = spec.bias;
  pass->images = images;
  pass->conv = std::make_unique<OneDnnConv>(shape, like);
  for (int t = 0; t < threads; ++t) pass->calls.push_back(pass->conv->call());
  const auto &plain = pass->conv->plain(), &packed = pass->conv->packed();
  const std::int64_t x = images * spec.x_size(), y = images * spec.y_size();
  std::size_t bytes = 0, library = pass->conv->scratch_bytes();
  auto way = [&](const auto& a, const auto& b, std::int64_t n, bool inward, bool f32) {
    Way made = make_way(a, b, n, inward, f32, &bytes);
    if (made.reorder) library = std::max(library, made.reorder->scratch_bytes());
    return made;
  };
  if (spec.kind == ConvKind::Forward) {
    pass->first = way(plain.x, packed.x, x, true, false);
    pass->result = way(plain.y, packed.y, y, false, false);
  } else if (spec.kind == ConvKind::GradInput) {
    pass->first = way(plain.y, packed.y, y, true, false);
    pass->result = way(plain.x, packed.x, x, false, false);
  } else {
    pass->first = way(plain.x, packed.x, x, true, false);
    pass->second = way(plain.y, packed.y, y, true, false);
    pass->result = way(plain.weight, packed.weight, spec.weight_size(), false, true);
  }
  pass->library_at = take(&bytes, library);
  thread_bytes = std::max(thread_bytes, bytes);
}

// Where the library finds the operand at `from`.
const void* ConvGrid::State::bring_in(Way& way, const void* from, char* base, char* library,
                                      int thread) const {
  if (way.widened) {
    auto* staged = reinterpret_cast<float*>(base + way.staged_at);
    widen(spec.type, from, staged, way.values);
    from = staged;
  }
  if (!way.reorder) return from;
  way.calls[thread].run({from, base + way.packed_at, library});
  return base + way.packed_at;
}

// `slot`: where a weight's gradient goes.
void ConvGrid::State::run_pass(Pass& pass, const ConvPointers& p, std::int64_t image, float* slot) {
  const int thread = omp_get_thread_num();
  char *base = thread_base(p), *library = base + pass.library_at;
  char* shared = static_cast<char*>(p.scratch);
  const bool grad_input = spec.kind == ConvKind::GradInput;
  const std::int64_t first_size = grad_input ? spec.y_size() : spec.x_size();
  const std::int64_t result_size = grad_input ? spec.x_size() : spec.y_size();
  const void* first =
      bring_in(pass.first, at(p.first, image * first_size, spec.type), base, library, thread);
  Way& out = pass.result;
  if (slot) {
    const void* dy = bring_in(pass.second, at(p.second, image * spec.y_size(), spec.type), base,
                              library, thread);
    void* dw = out.reorder ? static_cast<void*>(base + out.packed_at) : slot;
    pass.calls[thread].run({first, dw, dy, library});
    if (out.reorder) out.calls[thread].run({dw, slot, library});
    return;
  }
  const void* w = p.second;
  if (weight.reorder)
    w = shared + weight.packed_at;
  else if (weight.widened)
    w = shared + weight.staged_at;
  void* target = at(p.result, image * result_size, spec.type);
  void* plain = out.widened ? static_cast<void*>(base + out.staged_at) : target;
  void* packed = out.reorder ? static_cast<void*>(base + out.packed_at) : plain;
  if (grad_input)
    pass.calls[thread].run({packed, w, first, library});
  else if (spec.bias)
    pass.calls[thread].run({first, w, packed, library, shared + bias_at});
  else
    pass.calls[thread].run({first, w, packed, library});
  if (out.reorder) out.calls[thread].run({packed, plain, library});
  if (out.widened) narrow(static_cast<const float*>(plain), spec.type, target, out.values);
}

// Adds the slots of a round to the sums, in order; the last round rounds them into the result.
void ConvGrid::State::add_slots(const ConvPointers& p, std::int64_t count, bool first, bool last) {
  const std::int64_t n = spec.weight_size();
  const float* slots = reinterpret_cast<const float*>(static_cast<char*>(p.scratch) + slots_at);
  float* to = sums(p);
#pragma omp for schedule(static)
  for (std::int64_t i0 = 0; i0 < n; i0 += kAddRun) {
    const std::int64_t end = std::min(n, i0 + kAddRun);
    if (first) std::fill(to + i0, to + end, 0.0f);
    for (std::int64_t s = 0; s < count; ++s)
      for (std::int64_t i = i0; i < end; ++i) to[i] += slots[s * n + i];
    if (last && spec.type != DType::F32)
      narrow(to + i0, spec.type, at(p.result, i0, spec.type), end - i0);
  }
}

void ConvGrid::State::run_thread(const ConvPointers& p, std::int64_t images) {
  const OneThread one;
  const std::int64_t groups = images / group.images;
  const std::int64_t tasks = groups + images % group.images;
  auto run_task = [&](std::int64_t i, float* slot) {
    if (i < groups)
      run_pass(group, p, i * group.images, slot);
    else
      run_pass(single, p, groups * group.images + (i - groups), slot);
  };
  if (spec.kind != ConvKind::GradWeight) {
#pragma omp single
    {
      char* shared = static_cast<char*>(p.scratch);
      bring_in(weight, p.second, shared, shared + weight_library_at, omp_get_thread_num());
      if (spec.bias) widen(spec.type, p.bias, reinterpret_cast<float*>(shared + bias_at), spec.out);
    }
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t i = 0; i < tasks; ++i) run_task(i, nullptr);
    return;
  }
  float* slots = reinterpret_cast<float*>(static_cast<char*>(p.scratch) + slots_at);
  if (tasks == 0) add_slots(p, 0, true, true);
  for (std::int64_t base = 0; base < tasks; base += kSlots) {
    const std::int64_t count = std::min(kSlots, tasks - base);
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t i = 0; i < count; ++i) run_task(base + i, slots + i * spec.weight_size());
    add_slots(p, count, base == 0, base + count == tasks);
  }
}

ConvGrid::ConvGrid(const ConvSpec& spec) : state_(std::make_unique<State>(spec)) {}
ConvGrid::~ConvGrid() = default;

std::size_t ConvGrid::scratch_bytes() const {
  return state_->shared_bytes + state_->thread_bytes * state_->threads;
}

void ConvGrid::run(const ConvPointers& p, std::int64_t images) {
  State& s = *state_;
  const int threads = std::min(s.threads, omp_get_max_threads());
#pragma omp parallel num_threads(threads)
  s.run_thread(p, images);
}

}  // namespace aloft::cpu
