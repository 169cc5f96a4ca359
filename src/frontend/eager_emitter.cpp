#include "frontend/eager_emitter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "exec/launch.h"
#include "exec/places.h"
#include "frontend/eager_taps.h"
#include "frontend/ended_trace.h"
#include "frontend/random.h"
#include "frontend/variable_values.h"
#include "ops/evaluate.h"
#include "ops/graph_emitter.h"
#include "ops/op.h"
#include "plan/kernel_choice.h"
#include "runtime/sharded_block.h"
#include "runtime/threads.h"

namespace aloft {

namespace {
// State of at most so many bytes is copied when it is read.
constexpr std::size_t kCopied = 64;
// Numbers of values that no tape knows begin here, above any tape's nodes.
constexpr std::uint32_t kUnrecorded = 1u << 31;
}  // namespace

EagerEmitter::EagerEmitter(Device& device) : device_(device) { tape_.name = "tape"; }

namespace {
thread_local const char this_thread = 0;  // its address tells threads apart
}  // namespace

void EagerEmitter::begin() { thread_ = &this_thread; }

void EagerEmitter::end() {
  thread_ = nullptr;
  let_go_of_variables();
  clear_tape();
  reset();
  gradients_.clear();
  parts_.clear();
  recording_ = true;
}

void EagerEmitter::check_thread() const {
  if (thread_ == &this_thread) return;
  throw UserError("E0304", "a tensor is used on another thread than the one that made it")
      .saw(thread_ ? "a tensor of another thread's eager session" : "a tensor of an ended thread")
      .need("tensors that this thread made")
      .advice("read it there or here, to_vector(), and make one of its numbers, from_floats()");
}

const EagerCell& EagerEmitter::cell(const Tensor& t) const {
  if (t.held() == nullptr) refuse_foreign(t);
  return *static_cast<const EagerCell*>(t.held().get());
}

Tensor EagerEmitter::wrap(const std::shared_ptr<EagerCell>& cell) {
  return Tensor(this, cell->id, cell);
}

TensorType EagerEmitter::type_of(const Tensor& t) const { return cell(t).type; }

ValueNotes& EagerEmitter::notes(const Tensor& t) {
  if (t.held() == nullptr) refuse_foreign(t);
  return static_cast<EagerCell*>(t.held().get())->notes;
}

EagerEmitter::CellPtr EagerEmitter::new_cell(const TensorType& type,
                                             const std::map<Name, std::int64_t>& lengths) {
  auto c = std::make_shared<EagerCell>();
  c->type = type;
  c->born = ++born_;
  c->buffer = device_.allocate(std::max<std::size_t>(type.max_bytes(), 1));
  for (const Dim& d : type.shape)
    if (!d.is_constant()) {
      const auto it = lengths.find(d.symbol());
      if (it == lengths.end())
        throw UserError("E0306", "the length " + d.symbol().str() + " has no value")
            .need("a value for every symbolic dimension");
      c->lengths[d.symbol()] = it->second;
    }
  return c;
}

EagerEmitter::CellPtr EagerEmitter::copy_of(const EagerCell& c) {
  auto copy = std::make_shared<EagerCell>();
  copy->type = c.type;
  copy->buffer = c.buffer;
  copy->lengths = c.lengths;
  copy->born = ++born_;
  copy->is_borrowed = c.is_borrowed;
  if (c.is_borrowed) own(*copy);
  return copy;
}

void EagerEmitter::own(EagerCell& c) {
  Device& device = c.buffer.device();
  const std::size_t bytes = c.type.max_bytes();
  Buffer own = device.allocate(std::max<std::size_t>(bytes, 1));
  if (bytes > 0) copy_buffer(own.part(0, bytes), c.buffer.part(0, bytes));
  c.buffer = std::move(own);
  c.is_borrowed = false;
}

void EagerEmitter::record(std::uint32_t node, const std::vector<CellPtr>& cells) {
  for (std::uint32_t i = 0; i < cells.size(); ++i) {
    cells[i]->id = {node, i};
    cells[i]->generation = generation_;
    values_[{node, i}] = cells[i];
    tape_bytes_ += cells[i]->type.max_bytes();
  }
}

// A number of its own, so that it is never taken for another.
void EagerEmitter::leave_unrecorded(EagerCell& c) {
  if (c.id.node < kUnrecorded || !c.id.is_valid())
    c.id = {kUnrecorded + unrecorded_++ % (kUnrecorded - 1), 0};
}

// A value that the tape does not know joins it: as its variable's, where it was read from one, or
// as a leaf (from host memory, a compiled program, without its history).
void EagerEmitter::join(const CellPtr& c) {
  if (c->variable)
    record(tape_.add_state(*c->variable).node, {c});
  else
    record(tape_.add_input("leaf" + std::to_string(leaves_++), c->type).node, {c});
}

Tensor EagerEmitter::current(const Tensor& t) {
  auto c = std::static_pointer_cast<EagerCell>(t.held());
  if (c == nullptr) refuse_foreign(t);
  check_thread();
  if (is_recorded(*c)) return wrap(c);
  if (is_recording())
    join(c);
  else
    leave_unrecorded(*c);
  return wrap(c);
}

Tensor EagerEmitter::handle(ValueId v) { return wrap(values_.at(v)); }

namespace {
// Whether `c`, read earlier, still is the variable: a compiled program may have moved it into an
// arena, or a program or another thread written it since.
bool is_current(const EagerCell& c, const Variable& v) {
  if (c.type != v.type) return false;
  const bool is_its_value = c.buffer.is_at(*v.buffer) || !is_at_hand(*v.buffer);
  if (is_its_value && c.version == v.version) return true;
  const std::size_t bytes = v.type.max_bytes();
  return bytes <= kCopied && std::memcmp(c.buffer.read<std::byte>(0, bytes).data(),
                                         v.buffer->read<std::byte>(0, bytes).data(), bytes) == 0;
}
}  // namespace

Tensor EagerEmitter::state(const VariablePtr& variable) {
  const Tensor value = value_of(variable);
  if (taps_) taps_->read(*this, variable, value);
  return value;
}

Tensor EagerEmitter::value_of(const VariablePtr& variable) {
  if (!variable) throw no_variable("the value of no variable is asked for");
  sweep_if_grown();
  const auto held = hold_places();  // another thread's program may be placing it
  if (!variable->buffer) throw has_no_memory(*variable);
  CellPtr& c = states_[variable.get()];
  if (!c || !is_current(*c, *variable)) {
    if (c) state_bytes_ -= kept_bytes(*c);
    c = std::make_shared<EagerCell>();
    c->type = variable->type;
    state_bytes_ += kept_bytes(*c);
    c->buffer = *variable->buffer;
    c->born = ++born_;
    c->variable = variable;
    c->version = variable->version;
    c->is_borrowed = true;
    // Small state is copied at once: that is cheaper than to find out whether it is needed later.
    if (variable->type.max_bytes() <= kCopied || !is_at_hand(c->buffer)) own(*c);
  } else {
    c->version = variable->version;  // a program may have written the same value again
  }
  if (is_recording() && !is_recorded(*c))
    join(c);
  else if (!is_recorded(*c))
    leave_unrecorded(*c);
  return wrap(c);
}

void EagerEmitter::update(const VariablePtr& variable, const Tensor& value) {
  if (!variable) throw no_variable("a value is given to no variable");
  const EagerCell& c = cell(value);
  if (c.type != variable->type) throw changes_type(*variable, c.type);
  if (taps_) taps_->changes(*this, variable, value);
  write(variable, c);
}

void EagerEmitter::write(const VariablePtr& variable, const EagerCell& c) {
  // A program that several threads call may be moving the random states of all of them.
  const auto held = variable == random_state() ? hold_places() : std::unique_lock<std::mutex>();
  if (!variable->buffer) throw has_no_memory(*variable);
  if (c.buffer.is_at(*variable->buffer)) return;  // it is the value
  let_go_of(*variable);
  const std::size_t bytes = c.type.max_bytes();
  copy_buffer(variable->buffer->part(0, bytes), c.buffer.part(0, bytes));
}

void EagerEmitter::let_go_of(Variable& variable) {
  if (const auto it = states_.find(&variable); it != states_.end()) {
    let_go(it->second);
    state_bytes_ -= kept_bytes(*it->second);
    states_.erase(it);
  }
  ++variable.version;
}

// The variable is about to change: a value of it that somebody holds, or that a recorded op has
// used, is copied. After an ordinary step's backward there is none (forget_used).
void EagerEmitter::let_go(const CellPtr& c) {
  const bool recorded = is_recorded(*c);
  const long ours = 1 + (recorded ? 1 : 0);  // states_, values_
  const bool needed = c.use_count() > ours || (recorded && !tape_.users(c->id.node).empty());
  if (needed && c->is_borrowed) own(*c);
}

void EagerEmitter::let_go_of_variables() {
  if (tape_.capacity() > 0) sweep();
  for (const auto& [variable, c] : states_) let_go(c);
  states_.clear();
  state_bytes_ = 0;
}

DrawCounts& EagerEmitter::draws() {
  const std::array<std::int64_t, 3> now = random_numbers();
  if (draws_begun_ != draws_begun() || random_at_ != now) {
    draws_.clear();
    draws_begun_ = draws_begun();
    random_at_ = now;
  }
  return draws_;
}

std::int64_t EagerEmitter::random_key(Name op, const Tensor& rng) {
  const Where& w = current_where();
  const bool counts = cell(rng).variable == random_state();
  return random_key_of(w, op, counts ? draws()[{w.path, op}]++ : 0);
}

namespace {
UserError on_two_devices(Name op, const Device& of_operand, const Device& of_call) {
  return UserError("E0331", op.str() + ": an operand lies on another device")
      .saw("a tensor on " + of_operand.name())
      .need("operands on " + of_call.name() + ", this thread's current device")
      .advice("compute under a DeviceScope of the tensors' device, or make them anew on this one");
}

// Nothing is recorded while one lives; an op that throws must not switch recording off for good.
class Unrecorded {
 public:
  explicit Unrecorded(bool& recording) : recording_(recording), saved_(recording) {
    recording_ = false;
  }
  ~Unrecorded() { recording_ = saved_; }
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  bool& recording_;
  bool saved_;
};
}  // namespace

std::vector<EagerEmitter::CellPtr> EagerEmitter::execute(const OpCall& asked,
                                                         std::span<const Tensor> in,
                                                         const std::vector<TensorType>& out) {
  const Name op = asked.op;
  CallSpec call{op, asked.attrs, {}, out, host_threads().count(), asked.form};
  std::map<Name, std::int64_t> lengths;
  std::vector<Buffer> operands, results;
  for (const Tensor& t : in) {
    const EagerCell& c = cell(t);
    call.in.push_back(c.type);
    if (&c.buffer.device() != &device_) throw on_two_devices(op, c.buffer.device(), device_);
    operands.push_back(c.buffer);
    for (const auto& [symbol, value] : c.lengths)
      if (!lengths.emplace(symbol, value).second && lengths[symbol] != value)
        throw UserError("E0312",
                        op.str() + ": its operands disagree about the length " + symbol.str())
            .saw(std::to_string(lengths[symbol]) + " and " + std::to_string(value));
  }
  if (lends_lengths_)
    lengths.insert(lends_lengths_->lengths.begin(), lends_lengths_->lengths.end());
  const PreparedKernel kernel = device_.kernels().get(call);
  std::vector<CellPtr> cells;
  if (!kernel.kernel) {
    const OpDef& def = op_named(op);
    if (!def.body) throw nothing_computes(call, kernel.refusals);
    const Unrecorded unrecorded(recording_);
    const EagerTaps::Aside aside(*this);  // the op is what is looked at
    EmitterScope scope(*this);
    const std::vector<Tensor> results = def.body(asked.attrs, in);
    // A body's result may be a value that already has a place on the tape, or be a variable's.
    for (const Tensor& t : results) cells.push_back(copy_of(cell(t)));
    return cells;
  }
  if (kernel.kernel->is_view) {
    CellPtr c = copy_of(cell(in[0]));
    c->type = out[0];
    return {c};
  }
  for (const TensorType& t : out) {
    cells.push_back(new_cell(t, lengths));
    results.push_back(cells.back()->buffer);
  }
  std::vector<std::int64_t> symbols;
  for (Name s : call.symbols()) symbols.push_back(lengths.at(s));
  const Where& where = current_where();
  launch(device_, kernel, call, operands, results, symbols,
         {where.path.str(), where.phase, loop_place});
  return cells;
}

std::vector<Tensor> EagerEmitter::emit(const OpCall& call, std::span<const Tensor> in,
                                       const Where& where) {
  return taps_ ? taps_->emit(*this, call, in, where) : run_op(call, in, where);
}

std::vector<Tensor> EagerEmitter::run_op(const OpCall& call, std::span<const Tensor> in,
                                         const Where& where) {
  const OpDef& def = op_named(call.op);
  std::vector<TensorType> types;
  for (const Tensor& t : in) types.push_back(cell(t).type);
  const std::vector<TensorType> out = infer_types(def, call.attrs, types, where);
  const auto cells = execute(call, in, out);
  if (is_recording()) {
    std::vector<ValueId> ids;
    for (const Tensor& t : in) ids.push_back(current(t).id());
    const std::uint32_t n = tape_.add(call.op, call.attrs, std::move(ids), out, where);
    tape_.set_form(n, call.form);
    record(n, cells);
  } else {
    for (const auto& c : cells) leave_unrecorded(*c);
  }
  std::vector<Tensor> results;
  results.reserve(cells.size());
  for (const auto& c : cells) results.push_back(wrap(c));
  return results;
}

void EagerEmitter::watch(const Tensor& value, std::function<void(std::int32_t)> look) {
  look(static_cast<std::int32_t>(value.item()));
}

namespace {
HostArray on_host(const EagerCell& c) {
  HostArray a = HostArray::zeros(c.type.dtype, bind_lengths(c.type.shape, c.lengths).max_extents());
  if (!a.values.empty()) load_bytes(a, c.buffer.read<std::byte>().data());
  return a;
}
}  // namespace

std::vector<double> EagerEmitter::read(const Tensor& t) const { return on_host(cell(t)).doubles(); }

std::vector<std::int64_t> EagerEmitter::read_integers(const Tensor& t) const {
  std::vector<std::int64_t> integers;
  for (const HostNumber& v : on_host(cell(t)).values) integers.push_back(v.whole());
  return integers;
}

Tensor EagerEmitter::from_host(const TensorType& type, const void* bytes,
                               const std::map<Name, std::int64_t>& lengths) {
  sweep_if_grown();
  const auto c = new_cell(type, lengths);
  if (const auto n = bind_lengths(type, lengths).max_bytes())
    device_.stream().upload(c->buffer.part(0, n), bytes);
  return wrap(c);
}

Tensor EagerEmitter::borrow(const TensorType& type, Buffer buffer, Lost hidden,
                            std::uint64_t youngest_argument) {
  auto c = std::make_shared<EagerCell>();
  c->type = type;
  c->born = ++born_;
  c->buffer = std::move(buffer);
  c->is_borrowed = true;
  if (grad_enabled() && hidden != Lost::Nothing) {
    c->lost = hidden;
    c->youngest_argument = youngest_argument;
  }
  return wrap(c);
}

void EagerEmitter::settle(const Tensor& t) {
  auto& c = *static_cast<EagerCell*>(t.held().get());
  if (c.is_borrowed) own(c);
}

}  // namespace aloft
