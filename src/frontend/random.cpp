#include "frontend/random.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/error.h"
#include "exec/launch.h"
#include "exec/places.h"
#include "graph/graph.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/random.h"
#include "runtime/current_device.h"
#include "runtime/threads.h"

namespace aloft {
namespace {

// 1 at `index`, else 0: i64[3].
Tensor unit(std::int64_t index) {
  return cast(equal(iota(3, DType::I64), full(Shape{}, static_cast<double>(index), DType::I64)),
              DType::I64);
}

}  // namespace

namespace {

using State = std::array<std::int64_t, 3>;

// This thread's: one a device that it has drawn on.
struct States {
  std::map<const Device*, VariablePtr> all;
  State start = {};  // of a device that it meets later
  std::uint64_t begun = 0;
};
thread_local States states;

VariablePtr new_state(Device& device) {
  auto v = std::make_shared<Variable>();
  v->name = "random.state";
  v->type = {DType::I64, {3}};
  v->cls = StateClass::Control;
  v->requires_grad = false;
  v->buffer = std::make_shared<Buffer>(device.allocate(sizeof(State)));  // whatever is described
  std::ranges::copy(states.start, v->buffer->write<std::int64_t>().begin());
  return v;
}

}  // namespace

const VariablePtr& random_state() {
  Device& device = current_device();
  VariablePtr& state = states.all[&device];
  if (!state) state = new_state(device);
  return state;
}

void manual_seed(std::uint64_t seed) {
  // 52 bits: exact in a double, so that the host's evaluation draws the same numbers.
  states.start = {static_cast<std::int64_t>(seed & ((std::uint64_t{1} << 52) - 1))};
  {
    const auto held = hold_places();  // a program that several threads call may move the states
    for (const auto& [device, state] : states.all)
      std::ranges::copy(states.start,
                        state->buffer->write<std::int64_t>(0, states.start.size()).begin());
  }
  begin_draws();
}

void begin_draws() { ++states.begun; }

std::uint64_t draws_begun() { return states.begun; }

std::array<std::int64_t, 3> random_numbers() {
  State now;
  const VariablePtr& state = random_state();
  const auto held = hold_places();
  std::ranges::copy(state->buffer->read<std::int64_t>(0, now.size()), now.begin());
  return now;
}

void set_random_numbers(const std::array<std::int64_t, 3>& numbers) {
  const VariablePtr& state = random_state();
  const auto held = hold_places();
  std::ranges::copy(numbers, state->buffer->write<std::int64_t>(0, numbers.size()).begin());
}

LoopPlace loop_place() {
  const State now = random_numbers();
  return {now[1], now[2]};
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
  const CallSpec call{"random_normal", to_attrs(attrs), {state}, {drawn}, host_threads().count()};
  Device& device = current_device();
  const Choice choice = choose_kernel(device.backend(), call);
  ensure(choice.kernel != nullptr, "the back end draws normal numbers");
  // Once for each name: not for the cache.
  const PreparedKernel kernel{choice.kernel, prepare(device.backend(), *choice.kernel, call), {}};
  const State rng = {static_cast<std::int64_t>(current_seed()), 0, 0};
  const std::span<const std::byte> in[] = {std::as_bytes(std::span(rng))};
  const std::span<std::byte> out[] = {
      std::as_writable_bytes(std::span(values, static_cast<std::size_t>(count)))};
  launch_on_host(device, kernel, call, in, out, identity);
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
