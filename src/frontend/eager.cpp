#include "frontend/eager.h"

#include <omp.h>

#include <cstring>

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/evaluate.h"
#include "ops/graph_emitter.h"
#include "ops/op.h"
#include "runtime/default_backend.h"
#include "runtime/isolated_run.h"

namespace aloft {

namespace {
// State of at most so many bytes is copied when it is read.
constexpr std::size_t kCopied = 64;
// Numbers of values that no tape knows begin here, above any tape's nodes.
constexpr std::uint32_t kUnrecorded = 1u << 31;
}  // namespace

EagerEmitter::EagerEmitter(KernelCache& kernels) : kernels_(kernels) { tape_.name = "tape"; }

const EagerCell& EagerEmitter::cell(const Tensor& t) const {
  ensure(t.held() != nullptr, "an eager tensor holds its value");
  return *static_cast<const EagerCell*>(t.held().get());
}

Tensor EagerEmitter::wrap(const std::shared_ptr<EagerCell>& cell) {
  return Tensor(this, cell->id, cell);
}

TensorType EagerEmitter::type_of(const Tensor& t) const { return cell(t).type; }

std::shared_ptr<EagerCell> EagerEmitter::new_cell(const TensorType& type,
                                                  const std::map<Name, std::int64_t>& lengths) {
  auto c = std::make_shared<EagerCell>();
  c->type = type;
  c->memory = kernels_.backend().allocate(std::max<std::size_t>(type.max_bytes(), 1));
  c->data = c->memory.get();
  for (const Dim& d : type.shape)
    if (!d.is_constant()) {
      const auto it = lengths.find(d.symbol);
      if (it == lengths.end())
        throw UserError("E0306", "the length " + d.symbol.str() + " has no value")
            .need("a value for every symbolic dimension");
      c->lengths[d.symbol] = it->second;
    }
  return c;
}

void EagerEmitter::record(std::uint32_t node,
                          const std::vector<std::shared_ptr<EagerCell>>& cells) {
  for (std::uint32_t i = 0; i < cells.size(); ++i) {
    cells[i]->id = {node, i};
    cells[i]->generation = generation_;
    values_[{node, i}] = cells[i];
    tape_bytes_ += cells[i]->type.max_bytes();
  }
}

ValueId EagerEmitter::unrecorded_id() {
  return {kUnrecorded + unrecorded_++ % (kUnrecorded - 1), 0};
}

// A value that the tape does not know (from host memory, from a dropped tape) joins it as a leaf;
// where nothing is recorded it gets a number of its own, so that it is never taken for another.
Tensor EagerEmitter::current(const Tensor& t) {
  auto c = std::static_pointer_cast<EagerCell>(t.held());
  ensure(c != nullptr, "an eager tensor holds its value");
  if (c->generation == generation_) return wrap(c);
  if (!recording_ || !grad_enabled()) {
    if (c->id.node < kUnrecorded || !c->id.is_valid()) c->id = unrecorded_id();
  } else {
    const ValueId id = tape_.add_input("leaf" + std::to_string(leaves_++), c->type);
    record(id.node, {c});
  }
  return wrap(c);
}

Tensor EagerEmitter::handle(ValueId v) { return wrap(values_.at(v)); }

namespace {
// Whether `c`, read earlier, still is the variable: a compiled program may have moved it into an
// arena or written it since.
bool is_current(const EagerCell& c, const Variable& v) {
  if (c.type != v.type) return false;
  return c.data == v.data ||
         (v.type.max_bytes() <= kCopied && std::memcmp(c.data, v.data, v.type.max_bytes()) == 0);
}
}  // namespace

Tensor EagerEmitter::state(const VariablePtr& variable) {
  sweep_if_grown();
  if (const auto it = states_.find(variable->name); it != states_.end() &&
                                                    variables_[variable->name] == variable &&
                                                    is_current(*it->second, *variable))
    return wrap(it->second);
  auto c = std::make_shared<EagerCell>();
  c->type = variable->type;
  if (variable->type.max_bytes() <= kCopied) {
    // Small state is copied, so that what was read stays as it was when an update follows.
    c = new_cell(variable->type, {});
    std::memcpy(c->data, variable->data, variable->type.max_bytes());
  } else {
    c->data = variable->data;
    c->memory = variable->memory;
  }
  variables_[variable->name] = variable;
  record(tape_.add_state(*variable).node, {c});
  states_[variable->name] = c;
  return wrap(c);
}

void EagerEmitter::update(const VariablePtr& variable, const Tensor& value) {
  const EagerCell& c = cell(value);
  if (c.type != variable->type)
    throw InternalError("an update changes the type of '" + variable->name.str() + "'")
        .saw(c.type.str())
        .need(variable->type.str());
  if (c.data != variable->data) std::memmove(variable->data, c.data, c.type.max_bytes());
  states_.erase(variable->name);
}

std::int64_t EagerEmitter::random_key(Name op) {
  const Where& w = current_where();
  return random_key_of(w, op, occurrences_[{w.path, op}]++);
}

namespace {
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

std::vector<std::shared_ptr<EagerCell>> EagerEmitter::execute(Name op, const Attrs& attrs,
                                                              std::span<const Tensor> in,
                                                              const std::vector<TensorType>& out) {
  CallSpec call{op, attrs, {}, out, omp_get_max_threads()};
  std::map<Name, std::int64_t> lengths;
  std::vector<void*> in_data, out_data;
  for (const Tensor& t : in) {
    const EagerCell& c = cell(t);
    call.in.push_back(c.type);
    in_data.push_back(c.data);
    for (const auto& [symbol, value] : c.lengths)
      if (!lengths.emplace(symbol, value).second && lengths[symbol] != value)
        throw UserError("E0312",
                        op.str() + ": its operands disagree about the length " + symbol.str())
            .saw(std::to_string(lengths[symbol]) + " and " + std::to_string(value));
  }
  const PreparedKernel kernel = kernels_.get(call);
  std::vector<std::shared_ptr<EagerCell>> cells;
  if (!kernel.kernel) {
    const OpDef& def = op_named(op);
    ensure(def.body != nullptr, "an op has a kernel or a body: " + op.str());
    const Unrecorded unrecorded(recording_);
    EmitterScope scope(*this);
    const std::vector<Tensor> results = def.body(attrs, in);
    // The body's result may be a value that already has a place on the tape.
    for (const Tensor& t : results) cells.push_back(view_of(t));
    return cells;
  }
  if (kernel.kernel->is_view) {
    const auto c = view_of(in[0]);
    c->type = out[0];
    return {c};
  }
  for (const TensorType& t : out) {
    cells.push_back(new_cell(t, lengths));
    out_data.push_back(cells.back()->data);
  }
  std::shared_ptr<void> scratch;
  if (const std::size_t bytes = kernel.prepared->scratch_bytes())
    scratch = kernels_.backend().allocate(bytes);
  std::vector<std::int64_t> symbols;
  for (Name s : call.symbols()) symbols.push_back(lengths.at(s));
  const RunArgs args{in_data, out_data, scratch.get(), symbols};
  if (is_memory_check_wanted())
    run_isolated(*kernel.prepared, call, args,
                 {current_where().path.str() + "/" + op.str(), std::string(kernel.kernel->name)});
  else
    kernel.prepared->run(args);
  return cells;
}

std::vector<Tensor> EagerEmitter::emit(Name op, const Attrs& attrs, std::span<const Tensor> in,
                                       const Where& where) {
  const OpDef& def = op_named(op);
  std::vector<TensorType> types;
  for (const Tensor& t : in) types.push_back(cell(t).type);
  const std::vector<TensorType> out = infer_types(def, attrs, types, where);
  const auto cells = execute(op, attrs, in, out);
  if (recording_ && grad_enabled()) {
    std::vector<ValueId> ids;
    for (const Tensor& t : in) ids.push_back(current(t).id());
    record(tape_.add(op, attrs, std::move(ids), out, where), cells);
  } else {
    for (const auto& c : cells) c->id = unrecorded_id();
  }
  std::vector<Tensor> results;
  results.reserve(cells.size());
  for (const auto& c : cells) results.push_back(wrap(c));
  return results;
}

std::vector<Tensor> EagerEmitter::gradients(const Tensor& target, const Tensor& seed,
                                            std::span<const Tensor> wrt, const Where& where) {
  Emitter& emitter = outer_ ? static_cast<Emitter&>(*outer_) : *this;
  EmitterScope emitter_scope(emitter);
  Where w = where;
  w.phase = Phase::Backward;
  w.pass = "differentiate";
  Scope scope(w);
  const auto through = [&](const Tensor& t) {
    const Tensor now = current(t);
    return Tensor(&emitter, now.id(), now.held());
  };
  const Tensor to = through(target);
  const Tensor from = broadcast_like(cast(through(seed), to.dtype()), to);
  std::vector<Tensor> of;
  for (const Tensor& t : wrt) of.push_back(through(t));
  std::vector<Tensor> result = differentiate(tape_, emitter, to, from, of);
  for (std::size_t i = 0; i < result.size(); ++i)
    if (!result[i].is_defined()) result[i] = full(of[i].shape(), 0.0, of[i].dtype());
  clear_tape();
  return result;
}

void EagerEmitter::backward(const Tensor& loss) {
  std::vector<Name> names;
  std::vector<Tensor> parameters;
  for (std::uint32_t n : tape_.states()) {
    const Name name = std::get<std::string>(*tape_.node(n).attrs.find("name"));
    const VariablePtr& v = variables_.at(name);
    if (v->cls != StateClass::Parameter || !v->requires_grad) continue;
    names.push_back(name);
    parameters.push_back(handle({n, 0}));
  }
  EmitterScope scope(*this);
  const std::vector<Tensor> grads =
      gradients(loss, full(Shape{}, 1.0, DType::F32), parameters, current_where());
  gradients_.clear();
  for (std::size_t i = 0; i < names.size(); ++i) gradients_[names[i]] = grads[i];
}

Tensor EagerEmitter::gradient_of(Name variable) const {
  const auto it = gradients_.find(variable);
  return it == gradients_.end() ? Tensor() : it->second;
}

void EagerEmitter::clear_tape() {
  if (tape_.capacity() == 0 && values_.empty() && occurrences_.empty()) return;
  tape_ = Graph();
  tape_.name = "tape";
  values_.clear();
  states_.clear();
  occurrences_.clear();
  leaves_ = 0;
  tape_bytes_ = 0;
  ++generation_;
  if (outer_) outer_->forget_values();
}

namespace {
HostArray on_host(const EagerCell& c) {
  HostArray a = HostArray::zeros(c.type.dtype, bind_lengths(c.type.shape, c.lengths).max_extents());
  if (!a.values.empty()) load_bytes(a, c.data);
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
  if (const auto n = bind_lengths(type, lengths).max_bytes()) std::memcpy(c->data, bytes, n);
  return wrap(c);
}

Tensor EagerEmitter::borrow(const TensorType& type, void* data, std::shared_ptr<void> memory) {
  auto c = std::make_shared<EagerCell>();
  c->type = type;
  c->data = data;
  c->memory = std::move(memory);
  c->is_borrowed = true;
  return wrap(c);
}

void EagerEmitter::settle(const Tensor& t) {
  auto& c = *static_cast<EagerCell*>(t.held().get());
  if (!c.is_borrowed) return;
  const std::size_t bytes = c.type.max_bytes();
  std::shared_ptr<void> own = default_backend().allocate(std::max<std::size_t>(bytes, 1));
  if (bytes > 0) std::memcpy(own.get(), c.data, bytes);
  c.data = own.get();
  c.memory = std::move(own);
  c.is_borrowed = false;
}

std::shared_ptr<EagerCell> EagerEmitter::view_of(const Tensor& t) {
  settle(t);  // its owner knows of one value over the memory, not of this one
  auto c = std::make_shared<EagerCell>(cell(t));
  c->generation = 0;
  return c;
}

void use_backend(const Backend& backend) {
  set_default_backend(backend);
  set_default_emitter([]() -> Emitter& { return eager_session(); });
}

EagerEmitter& eager() {
  thread_local EagerEmitter emitter(default_kernels());
  return emitter;
}

CastingEmitter& eager_session() {
  thread_local CastingEmitter session = [] { return CastingEmitter(eager(), Capability{}); }();
  eager().set_outer(&session);
  return session;
}

namespace {
Tensor in_session(const Tensor& t) { return Tensor(&eager_session(), t.id(), t.held()); }

template <class T>
Tensor from_values(DType dtype, const std::vector<T>& values, const Shape& shape) {
  if (static_cast<std::int64_t>(values.size()) != shape.max_numel())
    throw UserError("E0313", "the number of values does not fit the shape")
        .saw(std::to_string(values.size()) + " values for " + shape.str());
  return in_session(eager().from_host({dtype, shape}, values.data()));
}
}  // namespace

Tensor from_floats(const std::vector<float>& values, const Shape& shape) {
  return from_values(DType::F32, values, shape);
}
Tensor from_doubles(const std::vector<double>& values, const Shape& shape) {
  return from_values(DType::F64, values, shape);
}
Tensor from_ints(const std::vector<std::int32_t>& values, const Shape& shape) {
  return from_values(DType::I32, values, shape);
}
Tensor from_int64s(const std::vector<std::int64_t>& values, const Shape& shape) {
  return from_values(DType::I64, values, shape);
}

Tensor grad_of(const VariablePtr& parameter) {
  const Tensor g = eager().gradient_of(parameter->name);
  return g.is_defined() ? in_session(g) : g;
}

}  // namespace aloft
