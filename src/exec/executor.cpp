#include "exec/executor.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/text.h"
#include "exec/memory_check.h"
#include "exec/places.h"

namespace aloft {

namespace {
void* address_of(const Buffer& b) { return b ? b.address() : nullptr; }
}  // namespace

// One instruction with its addresses filled in.
struct Executor::Step {
  std::shared_ptr<const Prepared> prepared;
  std::vector<void*> in, out;
  std::vector<int> lengths;  // for each symbol of the call: index into the program's symbols
  std::vector<std::int64_t> values;  // their values in this run
  RunArgs args;                      // of all that
};

struct Executor::Ready {
  const Program* program = nullptr;
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  // Bits of the variables that it writes; those of the optimizer go with its parameters'.
  struct Writes {
    std::atomic<std::uint64_t>* word;
    std::uint64_t bits;
  };
  std::vector<Writes> writes;
};

Executor::~Executor() = default;

Executor::Executor(Plan plan, Device& device, const std::map<Name, VariablePtr>& variables)
    : plan_(std::move(plan)), device_(device), place_(std::make_shared<Place>()) {
  verify(plan_);
  if (is_memory_check_wanted()) check_ = std::make_unique<MemoryCheck>(plan_, device_);
  {
    const auto held = hold_places();  // two that share variables must agree on who places them
    find_shared(variables);
    make_arenas(variables);
  }
  for (const Program& p : plan_.programs) prepare(p);
}

Buffer Executor::arena(Arena a) const {
  const auto it = arenas_.find(a);
  return it == arenas_.end() ? Buffer() : it->second;
}

void Executor::find_shared(const std::map<Name, VariablePtr>& variables) {
  for (const auto& [id, v] : variables) {
    if (!v->buffer) continue;
    if (&v->buffer->device() != &device_)
      throw UserError("E0331", "a program meets a variable of another device")
          .saw("'" + v->name.str() + "' on " + v->buffer->device().name())
          .need("variables on " + device_.name() + ", where the program runs")
          .advice("make the model and compile its step under one DeviceScope");
    if (std::shared_ptr<Place> place = v->buffer->block()->place.lock())
      shared_[id] = {*v->buffer, std::move(place)};
  }
}

// All but those whose every variable lies elsewhere. Those of variables come first, each filled
// before the next is there: what moves in must not be there twice at the peak.
void Executor::make_arenas(const std::map<Name, VariablePtr>& variables) {
  std::map<Arena, bool> is_used = {
      {Arena::Gradients, true}, {Arena::Activations, true}, {Arena::Staging, true}};
  double moved = 0;
  for (const StateSlot& slot : plan_.state) {
    if (shared_.contains(slot.id)) continue;
    is_used[slot.arena] = true;
    moved += static_cast<double>(slot.type.max_bytes());
  }
  double needed = 0;
  for (const auto& [arena, bytes] : plan_.arena_bytes)
    if (is_used[arena]) needed += static_cast<double>(bytes);
  device_.need_memory(needed, arenas_text(plan_), "a smaller batch or model, or a lower precision",
                      moved);
  for (const auto& [arena, bytes] : plan_.arena_bytes) {
    if (bytes > 0 && is_used[arena]) allocate(arena, bytes);
    adopt(arena, variables);
  }
}

void Executor::allocate(Arena arena, std::size_t bytes) {
  try {
    arenas_[arena] = check_ ? check_->allocate(arena, bytes) : device_.allocate_zeroed(bytes);
  } catch (EnvironmentError& e) {  // a block is named with the whole that it belongs to
    e.add_line("for", std::string(name_of(arena)) + " of a plan of " +
                          human_bytes(plan_.peak_bytes()) + " in all");
    throw;
  }
  arenas_[arena].block()->place = place_;
}

Buffer Executor::buffer_of(const PlannedBuffer& planned, const VariablesOf& variables) const {
  if (!shared_.empty())
    if (const StateSlot* slot = variables.in(planned))
      if (const auto it = shared_.find(slot->id); it != shared_.end()) return it->second.buffer;
  const Buffer whole = arena(planned.arena);
  return whole ? whole.part(planned.bytes ? planned.offset : 0, planned.bytes) : whole;
}

void Executor::adopt(Arena arena, const std::map<Name, VariablePtr>& variables) {
  std::size_t freed = 0;
  for (const StateSlot& slot : plan_.state) {
    if (slot.arena != arena) continue;
    const auto it = variables.find(slot.id);
    if (it == variables.end())
      throw InternalError("the plan's state has no variable '" + slot.id.str() + "'");
    Variable& v = *it->second;
    if (v.type != slot.type)
      throw InternalError("variable '" + slot.id.str() + "' has another type than the plan")
          .saw(v.type.str())
          .need(slot.type.str());
    if (shared_.contains(slot.id)) continue;
    ensure(v.buffer != nullptr, "a variable that programs run on has a value");
    const std::size_t bytes = v.type.max_bytes();
    if (bytes == 0) continue;  // it stays where it is: its arena may have no memory at all
    const Buffer home = arenas_.at(slot.arena).part(slot.offset, bytes);
    // Under the check it is poison so far.
    device_.stream().copy(home, v.buffer->part(0, bytes),
                          check_ ? Before::Anything : Before::Zeros);
    v.buffer = std::make_shared<Buffer>(home);
    // Where a variable was before is free now. It goes back to the system in time: what is moved
    // must not be there twice at the peak.
    constexpr std::size_t kKept = std::size_t{8} << 20;
    if ((freed += bytes) >= kKept) {
      device_.release_unused();
      freed = 0;
    }
  }
  device_.release_unused();
}

void Executor::prepare(const Program& program) {
  auto ready = std::make_unique<Ready>();
  ready->program = &program;
  const VariablesOf variables(plan_);
  for (const PlannedBuffer& b : program.buffers) ready->buffers.push_back(buffer_of(b, variables));
  const auto address = [&](int b) { return address_of(ready->buffers[b]); };
  for (const Instruction& ins : program.instructions) {
    Step& step = ready->steps.emplace_back();
    step.prepared = device_.kernels().get(ins.call, ins.kernel).prepared;
    for (const BufferRef& r : ins.in) step.in.push_back(address(r.buffer));
    for (const BufferRef& r : ins.out) step.out.push_back(address(r.buffer));
    for (Name symbol : ins.call.symbols()) {
      int index = -1;
      for (std::size_t s = 0; s < program.symbols.size(); ++s)
        if (program.symbols[s] == symbol) index = static_cast<int>(s);
      ensure(index >= 0, "a call's symbols are its program's");
      step.lengths.push_back(index);
    }
    step.values.assign(step.lengths.size(), 0);
    step.args = {step.in,     step.out,          ins.scratch >= 0 ? address(ins.scratch) : nullptr,
                 step.values, &device_.stream(), ins.identity};
  }
  find_writes(*ready, variables);
  programs_.push_back(std::move(ready));
}

void Executor::find_writes(Ready& ready, const VariablesOf& variables) {
  const auto held = hold_places();
  constexpr std::size_t kBits = 64;
  std::map<std::atomic<std::uint64_t>*, std::uint64_t> writes;
  for (const Instruction& ins : ready.program->instructions)
    for (const BufferRef& r : ins.out) {
      const StateSlot* slot = variables.in(ready.program->buffers[r.buffer]);
      if (!slot || slot->cls == StateClass::Optimizer || slot->cls == StateClass::Control) continue;
      const auto other = shared_.find(slot->id);
      Place& place = other == shared_.end() ? *place_ : *other->second.place;
      const std::size_t bit =
          place.bits.try_emplace(address_of(ready.buffers[r.buffer]), place.bits.size())
              .first->second;
      while (place.writing.size() * kBits <= bit) place.writing.emplace_back(0);
      writes[&place.writing[bit / kBits]] |= std::uint64_t{1} << bit % kBits;
    }
  for (const auto& [word, bits] : writes) ready.writes.push_back({word, bits});
}

bool Executor::is_cut_by_bound(int program) const {
  const std::vector<Step>& steps = programs_[program]->steps;
  return std::any_of(steps.begin(), steps.end(), [](const Step& s) {
    return !s.lengths.empty() && s.prepared->is_cut_by_bound();
  });
}

int Executor::find(std::string_view program) const {
  for (std::size_t i = 0; i < programs_.size(); ++i)
    if (programs_[i]->program->name == program) return static_cast<int>(i);
  return -1;
}

namespace {
const BufferRef* find_ref(const std::vector<NamedRef>& list, std::string_view name) {
  for (const NamedRef& r : list)
    if (r.name == name) return &r.ref;
  return nullptr;
}
}  // namespace

Buffer Executor::input(std::string_view program, std::string_view name) const {
  const int p = find(program);
  if (p < 0) return {};
  const BufferRef* ref = find_ref(programs_[p]->program->inputs, name);
  return ref ? programs_[p]->buffers[ref->buffer] : Buffer();
}

Buffer Executor::output(std::string_view program, std::string_view name) const {
  const int p = find(program);
  if (p < 0) return {};
  const BufferRef* ref = find_ref(programs_[p]->program->outputs, name);
  return ref ? programs_[p]->buffers[ref->buffer] : Buffer();
}

Executor::Turn::Turn(Executor& executor, int program)
    : ready_(*executor.programs_[program]), entered_(executor.caller_, ready_.program->name) {
  for (std::size_t i = 0; i < ready_.writes.size(); ++i) {
    const auto [word, bits] = ready_.writes[i];
    const std::uint64_t before = word->fetch_or(bits, std::memory_order_acquire);
    if ((before & bits) == 0) continue;
    word->fetch_and(~bits | before, std::memory_order_release);
    leave(i);
    refuse();
  }
}

Executor::Turn::~Turn() { leave(ready_.writes.size()); }

void Executor::Turn::leave(std::size_t words) {
  for (std::size_t i = 0; i < words; ++i)
    ready_.writes[i].word->fetch_and(~ready_.writes[i].bits, std::memory_order_release);
}

void Executor::Turn::refuse() const {
  throw UserError("E0330", "the program '" + ready_.program->name +
                               "' writes variables that another program is writing")
      .saw("a run of another program that trains them, which has not ended")
      .need("one writer of a model at a time")
      .advice("train a model on one thread, or take turns with a mutex");
}

void Executor::run(int program, std::span<const std::int64_t> lengths) {
  run(Turn(*this, program), lengths);
}

void Executor::run(const Turn& turn, std::span<const std::int64_t> lengths, const LoopPlace& at) {
  Ready& ready = turn.ready_;
  if (lengths.size() != ready.program->symbols.size())
    throw UserError("E0307", "the lengths are not as many as those of the program")
        .saw(std::to_string(lengths.size()))
        .need(std::to_string(ready.program->symbols.size()));
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] < 0 || lengths[i] > ready.program->bounds[i])
      throw UserError("E0307",
                      "the length " + ready.program->symbols[i].str() + " is out of bounds")
          .saw(std::to_string(lengths[i]))
          .need("0 to " + std::to_string(ready.program->bounds[i]));
  for (Step& step : ready.steps)
    for (std::size_t s = 0; s < step.lengths.size(); ++s) step.values[s] = lengths[step.lengths[s]];
  if (check_) check_->begin(*ready.program);
  if (const auto observers = device_.observers().list())
    return run_watched(ready, lengths, at, *observers);
  for (std::size_t i = 0; i < ready.steps.size(); ++i) run_step(ready, i);
}

void Executor::run_step(const Ready& ready, std::size_t i) {
  const Step& step = ready.steps[i];
  if (check_)
    check_->run(*ready.program, static_cast<int>(i), *step.prepared, step.args);
  else
    step.prepared->run(step.args);
}

void Executor::run_watched(Ready& ready, std::span<const std::int64_t> lengths, const LoopPlace& at,
                           const Observers::List& observers) {
  const Program& program = *ready.program;
  const ProgramEvent whole{program.name, lengths, at};
  for (Observer* o : observers) o->program_begins(whole);
  const auto buffers = [&](const std::vector<BufferRef>& refs) {
    std::vector<Buffer> all;
    for (const BufferRef& r : refs) {
      const Buffer& b = ready.buffers[r.buffer];
      all.push_back(b ? b.part(0, r.type.max_bytes()) : b);
    }
    return all;
  };
  for (std::size_t i = 0; i < ready.steps.size(); ++i) {
    const Instruction& ins = program.instructions[i];
    const std::vector<Buffer> in = buffers(ins.in), out = buffers(ins.out);
    OpEvent e{.program = program.name,
              .instruction = static_cast<int>(i),
              .call = ins.call,
              .kernel = ins.kernel,
              .path = ins.path,
              .identity = ins.identity,
              .phase = ins.phase,
              .in = in,
              .out = out,
              .lengths = ready.steps[i].values,
              .at = at};
    for (Observer* o : observers) o->before(e);
    e.begin = device_.stream().record();
    run_step(ready, i);
    e.end = device_.stream().record();
    for (Observer* o : observers) o->after(e);
  }
  for (Observer* o : observers) o->program_ends(whole);
}

}  // namespace aloft
