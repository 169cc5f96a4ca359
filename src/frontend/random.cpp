#include "frontend/random.h"

#include <omp.h>

#include <cstring>

#include "base/error.h"
#include "exec/places.h"
#include "graph/graph.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/random.h"
#include "runtime/default_backend.h"

namespace aloft {
namespace {

// 1 at `index`, else 0: i64[3].
Tensor unit(std::int64_t index) {
  return cast(equal(iota(3, DType::I64), full(Shape{}, static_cast<double>(index), DType::I64)),
              DType::I64);
}

}  // namespace

const VariablePtr& random_state() {
  thread_local const VariablePtr state = [] {
    auto v = std::make_shared<Variable>();
    v->name = "random.state";
    v->type = {DType::I64, {3}};
    v->cls = StateClass::Control;
    v->requires_grad = false;
    v->memory = default_backend().allocate_zeroed(v->type.max_bytes());  // whatever is described
    v->data = v->memory.get();
    return v;
  }();
  return state;
}

namespace {
thread_local std::uint64_t begun = 0;
}

void manual_seed(std::uint64_t seed) {
  // 52 bits: exact in a double, so that the host's evaluation draws the same numbers.
  const std::int64_t start[3] = {static_cast<std::int64_t>(seed & ((std::uint64_t{1} << 52) - 1))};
  {
    const auto held = hold_places();  // a program that several threads call may move the state
    std::memcpy(random_state()->data, start, sizeof start);
  }
  begin_draws();
}

void begin_draws() { ++begun; }

std::uint64_t draws_begun() { return begun; }

std::array<std::int64_t, 3> random_numbers() {
  std::array<std::int64_t, 3> now;
  const auto held = hold_places();
  std::memcpy(now.data(), random_state()->data, sizeof now);
  return now;
}

std::int64_t random_position() {
  const auto now = random_numbers();
  return now[1] * (std::int64_t{1} << 20) + now[2];
}

std::uint64_t current_seed() { return static_cast<std::uint64_t>(random_numbers()[0]); }

void draw_normal(std::string_view identity, double deviation, float* values, std::int64_t count) {
  if (count == 0) return;
  RandomNormalAttrs attrs;
  attrs.shape = {count};
  attrs.deviation = deviation;
  attrs.key = static_cast<std::int64_t>(identity_hash(identity));
  const TensorType state{DType::I64, {3}}, drawn{DType::F32, {count}};
  const CallSpec call{"random_normal", to_attrs(attrs), {state}, {drawn}, omp_get_max_threads()};
  const Backend& backend = default_backend();
  const Choice choice = choose_kernel(backend, call);
  ensure(choice.kernel != nullptr, "the back end draws normal numbers");
  const auto prepared = choice.kernel->prepare(call);  // once for each name: not for the cache
  const auto scratch = backend.allocate(std::max<std::size_t>(prepared->scratch_bytes(), 1));
  std::int64_t rng[3] = {static_cast<std::int64_t>(current_seed()), 0, 0};
  void* const in[] = {rng};
  void* const out[] = {values};
  prepared->run({in, out, scratch.get(), {}});
}

void advance_step() {
  const Tensor state = current_emitter().state(random_state());
  const Tensor keep = cast(less(iota(3, DType::I64), full(Shape{}, 2, DType::I64)), DType::I64);
  current_emitter().update(random_state(), state * keep + unit(1));
}

void advance_micro_batch() {
  const Tensor state = current_emitter().state(random_state());
  current_emitter().update(random_state(), state + unit(2));
}

}  // namespace aloft
