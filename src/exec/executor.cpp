#include "exec/executor.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/error.h"
#include "exec/memory_check.h"
#include "exec/places.h"
#include "exec/plan_memory.h"

namespace aloft {

namespace {
void* address_of(const Buffer& b) { return b ? b.address() : nullptr; }

// An instruction that moves bytes: streams do that, no kernel.
class PreparedCopy : public Prepared {
 public:
  PreparedCopy(Buffer to, Buffer from) : to_(std::move(to)), from_(std::move(from)) {}
  void run(const RunArgs& args) const override { args.stream->copy(to_, from_); }

 private:
  Buffer to_, from_;
};

Buffer named_part(const Buffer& whole, const BufferRef& r, std::size_t offset) {
  return whole ? whole.part(offset, r.type.max_bytes()) : whole;
}
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
  // Operands that are inputs with several homes.
  struct Turning {
    std::size_t step, operand, stride;
    std::byte* first;
  };
  std::vector<Turning> turning;
  std::shared_ptr<InputTurns> turns;    // null: every input has one home
  int streams = 1;                      // that it uses
  std::vector<Event> events;            // of this run
  std::size_t first_update = SIZE_MAX;  // the instruction before which updates may be held
  // Every instruction, between the beginning and the end of all streams.
  template <class HandOver>
  void on_all_streams(Executor& executor, const HandOver& hand_over) {
    executor.begin(*this);
    try {
      for (std::size_t i = 0; i < steps.size(); ++i) hand_over(i);
    } catch (...) {  // what was handed over is on its way
      executor.end(*this);
      throw;
    }
    executor.end(*this);
  }
  // What instruction i is given as its operand or result `r`.
  Buffer in(std::size_t i, std::size_t r) const {
    const Instruction& ins = program->instructions[i];
    Buffer whole = buffers[ins.in[r].buffer];
    if (program->buffers[ins.in[r].buffer].homes > 1)
      whole = turns->next(whole, ins.in[r].type.max_bytes());
    return named_part(whole, ins.in[r], ins.copy ? ins.copy->from : 0);
  }
  Buffer out(std::size_t i, std::size_t r) const {
    const Instruction& ins = program->instructions[i];
    return named_part(buffers[ins.out[r].buffer], ins.out[r], ins.copy ? ins.copy->to : 0);
  }
  // Bits of the variables that it writes; those of the optimizer go with its parameters'.
  struct Writes {
    std::atomic<std::uint64_t>* word;
    std::uint64_t bits;
  };
  std::vector<Writes> writes;
};

Executor::~Executor() = default;

namespace {
std::vector<Device*> all_devices(Device& first, std::vector<Device*> peers) {
  peers.insert(peers.begin(), &first);
  return peers;
}
}  // namespace

Executor::Executor(Plan plan, Device& device, const std::map<Name, VariablePtr>& variables,
                   std::vector<Device*> peers)
    : plan_(std::move(plan)), device_(device) {
  verify(plan_);
  if (is_memory_check_wanted()) check_ = std::make_unique<MemoryCheck>(plan_, device_);
  memory_ = std::make_unique<PlanMemory>(plan_, all_devices(device, std::move(peers)), variables,
                                         check_.get());
  for (const Program& p : plan_.programs) prepare(p);
}

Buffer Executor::arena(const ArenaAt& a) const { return memory_->arena(a); }

void Executor::prepare(const Program& program) {
  auto ready = std::make_unique<Ready>();
  ready->program = &program;
  const VariablesOf variables(plan_);
  int homes = 1;
  for (const PlannedBuffer& b : program.buffers) {
    ready->buffers.push_back(memory_->buffer_of(b, variables));
    homes = std::max(homes, b.homes);
  }
  if (homes > 1) ready->turns = std::make_shared<InputTurns>(device_, homes);
  const auto address = [&](int b) { return address_of(ready->buffers[b]); };
  for (const Instruction& ins : program.instructions) {
    Step& step = ready->steps.emplace_back();
    const std::size_t i = ready->steps.size() - 1;
    step.prepared = ins.copy ? std::make_shared<PreparedCopy>(ready->out(i, 0), ready->in(i, 0))
                             : device_.kernels().get(ins.call, ins.kernel).prepared;
    ready->streams = std::max(ready->streams, ins.stream + 1);
    if (ins.signals >= static_cast<int>(ready->events.size()))
      ready->events.resize(static_cast<std::size_t>(ins.signals) + 1);
    for (const BufferRef& r : ins.in) {
      const PlannedBuffer& b = program.buffers[static_cast<std::size_t>(r.buffer)];
      if (b.homes > 1 && b.bytes > 0)
        ready->turning.push_back({i, step.in.size(), b.bytes / static_cast<std::size_t>(b.homes),
                                  static_cast<std::byte*>(address(r.buffer))});
      step.in.push_back(address(r.buffer));
    }
    for (const BufferRef& r : ins.out) step.out.push_back(address(r.buffer));
    for (Name symbol : ins.call.symbols()) {
      int index = -1;
      for (std::size_t s = 0; s < program.symbols.size(); ++s)
        if (program.symbols[s] == symbol) index = static_cast<int>(s);
      ensure(index >= 0, "a call's symbols are its program's");
      step.lengths.push_back(index);
    }
    step.values.assign(step.lengths.size(), 0);
    step.args = {step.in,     step.out,        ins.scratch >= 0 ? address(ins.scratch) : nullptr,
                 step.values, &stream_of(ins), ins.identity};
  }
  find_writes(*ready, variables);
  programs_.push_back(std::move(ready));
}

void Executor::find_writes(Ready& ready, const VariablesOf& variables) {
  const auto held = hold_places();
  constexpr std::size_t kBits = 64;
  std::map<std::atomic<std::uint64_t>*, std::uint64_t> writes;
  for (std::size_t i = 0; i < ready.program->instructions.size(); ++i)
    for (const BufferRef& r : ready.program->instructions[i].out) {
      const StateSlot* slot = variables.in(ready.program->buffers[r.buffer]);
      if (slot && (slot->cls == StateClass::Parameter || slot->cls == StateClass::Optimizer))
        ready.first_update = std::min(ready.first_update, i);
      if (!slot || slot->cls == StateClass::Optimizer || slot->cls == StateClass::Control) continue;
      Place& place = memory_->place_of(*slot);
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
  const std::shared_ptr<InputTurns> turns = input_turns(program);
  const Buffer all = input_homes(program, name);
  if (!turns || !all) return all;
  const auto& inputs = programs_[find(program)]->program->inputs;
  return turns->open(all, find_ref(inputs, name)->type.max_bytes());
}

std::shared_ptr<InputTurns> Executor::input_turns(std::string_view program) const {
  const int p = find(program);
  return p < 0 ? nullptr : programs_[p]->turns;
}

Buffer Executor::input_homes(std::string_view program, std::string_view name) const {
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
  if (const auto failure = run(Turn(*this, program), lengths)) std::rethrow_exception(failure);
}

std::exception_ptr Executor::run(const Turn& turn, std::span<const std::int64_t> lengths,
                                 const LoopPlace& at) {
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
  if (const auto observers = device_.observers().list()) {
    Telling telling(*observers);
    run_watched(ready, lengths, at, telling);
    return telling.failure();
  }
  if (ready.streams == 1 && !ready.turns) {
    std::size_t i = 0;
    if (hold_ && ready.first_update < ready.steps.size()) {
      for (; i < ready.first_update; ++i) run_step(ready, i);
      hold_();
    }
    for (; i < ready.steps.size(); ++i) run_step(ready, i);
    return nullptr;
  }
  ready.on_all_streams(*this, [&](std::size_t i) { run_on_stream(ready, i); });
  return nullptr;
}

Stream& Executor::stream_of(const Instruction& ins) const {
  return device_.stream(ins.stream % device_.features().streams);
}

// All streams of a program begin behind what the first one was given before.
void Executor::begin(Ready& ready) {
  if (ready.turns) {
    const auto turn = static_cast<std::size_t>(ready.turns->begin_run());
    for (const Ready::Turning& t : ready.turning)
      ready.steps[t.step].in[t.operand] = t.first + turn * t.stride;
  }
  const Event before = device_.stream().record();
  for (int s = 1; s < std::min(ready.streams, device_.features().streams); ++s)
    device_.stream(s).wait(before);
}

// What the first stream is given from here on comes behind all of them.
void Executor::end(Ready& ready) {
  for (int s = 1; s < std::min(ready.streams, device_.features().streams); ++s)
    device_.stream().wait(device_.stream(s).record());
  if (ready.turns) ready.turns->end_run();
}

Stream& Executor::wait_for(Ready& ready, const Instruction& ins) {
  Stream& stream = stream_of(ins);
  for (const int event : ins.waits) stream.wait(ready.events[static_cast<std::size_t>(event)]);
  return stream;
}

void Executor::run_on_stream(Ready& ready, std::size_t i) {
  const Instruction& ins = ready.program->instructions[i];
  Stream& stream = wait_for(ready, ins);
  hold_before(ready, i);
  run_step(ready, i);
  if (ins.signals >= 0) ready.events[static_cast<std::size_t>(ins.signals)] = stream.record();
}

void Executor::hold_before(const Ready& ready, std::size_t i) const {
  if (hold_ && i == ready.first_update) hold_();
}

void Executor::run_step(Ready& ready, std::size_t i) {
  const Step& step = ready.steps[i];
  if (check_ && !ready.program->instructions[i].copy)
    check_->run(*ready.program, static_cast<int>(i), *step.prepared, step.args);
  else
    step.prepared->run(step.args);
}

void Executor::run_watched(Ready& ready, std::span<const std::int64_t> lengths, const LoopPlace& at,
                           Telling& telling) {
  const Program& program = *ready.program;
  const ProgramEvent whole{program.name, lengths, at};
  telling.tell([&](Observer& o) { o.program_begins(whole); });
  ready.on_all_streams(*this, [&](std::size_t i) {
    const Instruction& ins = program.instructions[i];
    std::vector<Buffer> in, out;
    for (std::size_t r = 0; r < ins.in.size(); ++r) in.push_back(ready.in(i, r));
    for (std::size_t r = 0; r < ins.out.size(); ++r) out.push_back(ready.out(i, r));
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
              .stream = ins.stream,
              .at = at};
    telling.tell([&](Observer& o) { o.before(e); });
    hold_before(ready, i);
    Stream& stream = wait_for(ready, ins);
    e.begin = stream.record();
    run_step(ready, i);
    e.end = stream.record();
    if (ins.signals >= 0) ready.events[static_cast<std::size_t>(ins.signals)] = e.end;
    telling.tell([&](Observer& o) { o.after(e); });
  });
  telling.tell([&](Observer& o) { o.program_ends(whole); });
}

}  // namespace aloft
