#include "exec/executor.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "exec/memory_check.h"
#include "exec/move_in.h"
#include "exec/places.h"

namespace aloft {

// What executors share that work on the same variables: which of those are being written, a bit
// each. It grows under hold_places().
struct Executor::Place {
  std::map<const void*, std::size_t> bits;  // by a variable's address
  std::deque<std::atomic<std::uint64_t>> writing;
};

// What keeps an arena: a variable's memory that ends in one tells where the variable is placed.
struct Executor::ArenaOwner {
  std::shared_ptr<void> memory;
  std::weak_ptr<Place> place;  // alive while programs count on the variables staying there
  void operator()(void*) {}
};

// One instruction with its addresses filled in.
struct Executor::Step {
  std::shared_ptr<const Prepared> prepared;
  std::vector<void*> in, out;
  void* scratch = nullptr;
  std::vector<int> lengths;  // for each symbol of the call: index into the program's symbols
  std::vector<std::int64_t> values;  // their values in this run
};

struct Executor::Ready {
  const Program* program = nullptr;
  std::vector<Step> steps;
  std::vector<void*> buffers;
  // Bits of the variables that it writes; those of the optimizer go with its parameters'.
  struct Writes {
    std::atomic<std::uint64_t>* word;
    std::uint64_t bits;
  };
  std::vector<Writes> writes;
};

Executor::~Executor() = default;

Executor::Executor(Plan plan, KernelCache& kernels, const std::map<Name, VariablePtr>& variables)
    : plan_(std::move(plan)), kernels_(kernels), place_(std::make_shared<Place>()) {
  verify(plan_);
  if (is_memory_check_wanted()) check_ = std::make_unique<MemoryCheck>(plan_);
  {
    const auto held = hold_places();  // two that share variables must agree on who places them
    find_shared(variables);
    allocate_arenas();
    adopt(variables);
  }
  for (const Program& p : plan_.programs) prepare(p);
}

std::byte* Executor::arena(Arena a) const {
  const auto it = arenas_.find(a);
  return it == arenas_.end() ? nullptr : static_cast<std::byte*>(it->second.get());
}

std::shared_ptr<void> Executor::memory_of(const Buffer& buffer) const {
  const auto it = arenas_.find(buffer.arena);
  const StateSlot* slot = plan_.variable_in(buffer);
  const bool is_elsewhere = slot != nullptr && shared_.contains(slot->id);
  return it == arenas_.end() || is_elsewhere ? nullptr : it->second;
}

void Executor::find_shared(const std::map<Name, VariablePtr>& variables) {
  for (const auto& [id, v] : variables)
    if (const auto* owner = std::get_deleter<ArenaOwner>(v->memory))
      if (std::shared_ptr<Place> place = owner->place.lock()) {
        shared_[id] = {v->data, std::move(place)};
        held_.push_back(v->memory);
      }
}

// All but those whose every variable lies elsewhere.
void Executor::allocate_arenas() {
  std::map<Arena, bool> is_used = {
      {Arena::Gradients, true}, {Arena::Activations, true}, {Arena::Staging, true}};
  for (const StateSlot& slot : plan_.state)
    if (!shared_.contains(slot.id)) is_used[slot.arena] = true;
  double needed = 0;
  for (const auto& [arena, bytes] : plan_.arena_bytes)
    if (is_used[arena]) needed += static_cast<double>(bytes);
  need_memory(needed, arenas_text(plan_), "a smaller batch or model, or a lower precision");
  for (const auto& [arena, bytes] : plan_.arena_bytes)
    if (bytes > 0 && is_used[arena]) {
      std::shared_ptr<void> memory;
      try {
        memory =
            check_ ? check_->allocate(arena, bytes) : kernels_.backend().allocate_zeroed(bytes);
      } catch (EnvironmentError& e) {  // a block is named with the whole that it belongs to
        e.add_line("for", std::string(name_of(arena)) + " of a plan of " +
                              human_bytes(plan_.peak_bytes()) + " in all");
        throw;
      }
      void* data = memory.get();
      arenas_[arena] = std::shared_ptr<void>(data, ArenaOwner{std::move(memory), place_});
    }
}

void* Executor::address_of(const Buffer& buffer, const VariablesOf& variables) const {
  if (!shared_.empty())
    if (const StateSlot* slot = variables.in(buffer))
      if (const auto it = shared_.find(slot->id); it != shared_.end()) return it->second.data;
  return buffer.bytes ? arena(buffer.arena) + buffer.offset : arena(buffer.arena);
}

void Executor::adopt(const std::map<Name, VariablePtr>& variables) {
  std::size_t freed = 0;
  for (const StateSlot& slot : plan_.state) {
    const auto it = variables.find(slot.id);
    if (it == variables.end())
      throw InternalError("the plan's state has no variable '" + slot.id.str() + "'");
    Variable& v = *it->second;
    if (v.type != slot.type)
      throw InternalError("variable '" + slot.id.str() + "' has another type than the plan")
          .saw(v.type.str())
          .need(slot.type.str());
    if (shared_.contains(slot.id)) continue;
    ensure(v.data != nullptr, "a variable that programs run on has a value");
    const std::size_t bytes = v.type.max_bytes();
    if (bytes == 0) continue;  // it stays where it is: its arena may have no memory at all
    std::byte* home = arena(slot.arena) + slot.offset;
    if (check_) std::memset(home, 0, bytes);  // it is poison so far
    move_in(home, static_cast<const std::byte*>(v.data), bytes);
    v.data = home;
    v.memory = arenas_[slot.arena];
    // Where a variable was before is free now. It goes back to the system in time: what is moved
    // must not be there twice at the peak.
    constexpr std::size_t kKept = std::size_t{8} << 20;
    if ((freed += bytes) >= kKept) {
      kernels_.backend().release_unused();
      freed = 0;
    }
  }
  kernels_.backend().release_unused();
}

void Executor::prepare(const Program& program) {
  auto ready = std::make_unique<Ready>();
  ready->program = &program;
  const VariablesOf variables(plan_);
  for (const Buffer& b : program.buffers) ready->buffers.push_back(address_of(b, variables));
  for (const Instruction& ins : program.instructions) {
    Step& step = ready->steps.emplace_back();
    step.prepared = kernels_.get(ins.call, ins.kernel).prepared;
    for (const BufferRef& r : ins.in) step.in.push_back(ready->buffers[r.buffer]);
    for (const BufferRef& r : ins.out) step.out.push_back(ready->buffers[r.buffer]);
    if (ins.scratch >= 0) step.scratch = ready->buffers[ins.scratch];
    for (Name symbol : ins.call.symbols()) {
      int index = -1;
      for (std::size_t s = 0; s < program.symbols.size(); ++s)
        if (program.symbols[s] == symbol) index = static_cast<int>(s);
      ensure(index >= 0, "a call's symbols are its program's");
      step.lengths.push_back(index);
    }
    step.values.assign(step.lengths.size(), 0);
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
          place.bits.try_emplace(ready.buffers[r.buffer], place.bits.size()).first->second;
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

void* Executor::input(std::string_view program, std::string_view name) const {
  const int p = find(program);
  if (p < 0) return nullptr;
  const BufferRef* ref = find_ref(programs_[p]->program->inputs, name);
  return ref ? programs_[p]->buffers[ref->buffer] : nullptr;
}

const void* Executor::output(std::string_view program, std::string_view name) const {
  const int p = find(program);
  if (p < 0) return nullptr;
  const BufferRef* ref = find_ref(programs_[p]->program->outputs, name);
  return ref ? programs_[p]->buffers[ref->buffer] : nullptr;
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

void Executor::run(const Turn& turn, std::span<const std::int64_t> lengths) {
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
  if (check_) check_->begin(*ready.program);
  for (std::size_t i = 0; i < ready.steps.size(); ++i) {
    Step& step = ready.steps[i];
    for (std::size_t s = 0; s < step.lengths.size(); ++s) step.values[s] = lengths[step.lengths[s]];
    if (observer_) observer_->before(ready.program->name, static_cast<int>(i));
    const RunArgs args{step.in, step.out, step.scratch, step.values};
    if (check_)
      check_->run(*ready.program, static_cast<int>(i), *step.prepared, args);
    else
      step.prepared->run(args);
    if (observer_) observer_->after(ready.program->name, static_cast<int>(i), step.out);
  }
}

}  // namespace aloft
