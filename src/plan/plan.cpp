#include "plan/plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "plan/lifetime.h"

namespace aloft {

Arena arena_of(StateClass cls) {
  switch (cls) {
    case StateClass::Parameter:
    case StateClass::Buffer:
      return Arena::Parameters;
    case StateClass::Optimizer:
      return Arena::Optimizer;
    case StateClass::Gradient:
      return Arena::Gradients;
    case StateClass::Control:
      return Arena::Control;
  }
  throw InternalError("an unknown class of state");
}

std::string name_of(const ArenaAt& a) {
  std::string name(name_of(a.arena));
  if (a.device > 0) name += "@" + std::to_string(a.device);
  if (a.space != Space::Device) name += "@" + std::string(name_of(a.space));
  return name;
}

std::size_t Plan::peak_bytes() const {
  std::size_t sum = 0;
  for (const auto& [arena, bytes] : arena_bytes)
    if (arena.device == 0 && arena.space == Space::Device) sum += bytes;
  return sum;
}

int Plan::devices() const {
  int count = 1;
  for (const auto& [arena, bytes] : arena_bytes) count = std::max(count, arena.device + 1);
  return count;
}

const Program* Plan::find(std::string_view program) const {
  for (const Program& p : programs)
    if (p.name == program) return &p;
  return nullptr;
}

const StateSlot* Plan::variable_in(const PlannedBuffer& buffer) const {
  for (const StateSlot& s : state)
    if (s.arena == buffer.arena && s.id.str() == buffer.name) return &s;
  return nullptr;
}

VariablesOf::VariablesOf(const Plan& plan) {
  for (const StateSlot& s : plan.state) by_id_.emplace(s.id.str(), &s);
}

const StateSlot* VariablesOf::in(const PlannedBuffer& buffer) const {
  const auto it = by_id_.find(buffer.name);
  return it != by_id_.end() && it->second->arena == buffer.arena ? it->second : nullptr;
}

namespace {

void merge_state(Plan& plan, const std::vector<StateSlot>& state) {
  std::unordered_map<Name, std::size_t> place;
  for (const StateSlot& s : plan.state) place.emplace(s.id, place.size());
  for (const StateSlot& wanted : state) {
    const auto [at, is_new] = place.emplace(wanted.id, plan.state.size());
    if (is_new) {
      plan.state.push_back(wanted);
      plan.state.back().arena = arena_of(wanted.cls);
      continue;
    }
    const StateSlot& known = plan.state[at->second];
    if (known.parts.size() != wanted.parts.size() || known.parts[0].space != wanted.parts[0].space)
      throw UserError("E0333", "two programs disagree about where a variable lies")
          .saw("'" + wanted.id.str() + "', whose home was changed between them")
          .need("the home that it had when the first program took it in")
          .advice("set Variable::home before the first program that uses it is compiled");
    if (known.type != wanted.type || known.cls != wanted.cls)
      throw InternalError("two programs disagree about variable '" + wanted.id.str() + "'")
          .saw(wanted.type.str())
          .need(known.type.str());
  }
}

// The end of the buffers of `program` in `arena` that are not variables', laid one behind the
// other from `from` on.
std::size_t lay_out(const VariablesOf& variables, Program& program, Arena arena, std::size_t from) {
  for (PlannedBuffer& b : program.buffers) {
    if (b.arena != arena || variables.in(b)) continue;
    b.placement.offset = from;
    from += aligned(b.bytes);
  }
  return from;
}

bool has_homes(const Program& p) {
  return std::any_of(p.buffers.begin(), p.buffers.end(),
                     [](const PlannedBuffer& b) { return b.homes > 1; });
}

}  // namespace

void add_program(Plan& plan, Program program, const std::vector<StateSlot>& state) {
  merge_state(plan, state);
  std::erase_if(plan.programs, [&](const Program& p) { return p.name == program.name; });
  plan.programs.push_back(std::move(program));

  std::map<ArenaAt, std::size_t> bytes;
  for (StateSlot& s : plan.state)
    for (std::size_t k = 0; k < s.parts.size(); ++k) {
      std::size_t& end = bytes[s.arena_at(k)];
      s.parts[k].offset = end;
      end += aligned(s.range(k).bytes);
    }
  const std::map<ArenaAt, std::size_t> state_bytes = bytes;
  bool any_homes = false;
  const VariablesOf variables(plan);
  for (Program& p : plan.programs) {
    for (PlannedBuffer& b : p.buffers) {
      if (const StateSlot* s = variables.in(b))
        b.placement.offset = s->parts[static_cast<std::size_t>(b.placement.shard.index)].offset;
      if (b.arena == Arena::Activations)
        bytes[b.arena] = std::max(bytes[b.arena], b.placement.offset + aligned(b.bytes));
    }
    const auto begin_of = [&](Arena arena) {
      const auto it = state_bytes.find(arena);
      return it == state_bytes.end() ? 0 : it->second;
    };
    bytes[Arena::Gradients] =
        std::max(bytes[Arena::Gradients],
                 lay_out(variables, p, Arena::Gradients, begin_of(Arena::Gradients)));
    // Inputs that are there before their run must outlive the runs of other programs.
    any_homes = any_homes || has_homes(p);
    const std::size_t from = any_homes ? bytes[Arena::Staging] : begin_of(Arena::Staging);
    bytes[Arena::Staging] =
        std::max(bytes[Arena::Staging], lay_out(variables, p, Arena::Staging, from));
  }
  plan.arena_bytes = std::move(bytes);
}

std::string Plan::signature() const {
  std::string text = backend;
  for (const auto& [key, value] : choices) text += "\n" + key + "=" + value;
  // Where everything lies as it does by default, nothing is said of it.
  for (const StateSlot& s : state) {
    text += "\n" + s.id.str() + " " + s.type.str();
    for (const Placement& p : s.parts)
      if (p.space != Space::Device || s.parts.size() > 1)
        text += " " + std::string(name_of(p.space)) + ":" + std::to_string(p.shard.index);
  }
  for (const Program& p : programs) {
    text += "\n" + p.name;
    for (const Instruction& i : p.instructions) {
      text += "\n" + i.identity + " " + i.kernel + " " + i.call.attrs.str();
      for (const ProductForm form : {i.call.form, i.form})
        if (form != ProductForm::Plain) text += " as " + std::string(name_of(form));
      for (const auto* refs : {&i.in, &i.out})
        for (const BufferRef& r : *refs)
          text += " " + std::to_string(r.buffer) + ":" + r.type.str();
      if (i.stream != 0) text += " stream " + std::to_string(i.stream);
      for (const int event : i.waits) text += " waits " + std::to_string(event);
      if (i.signals >= 0) text += " signals " + std::to_string(i.signals);
    }
  }
  return hex16(hash64(text));
}

}  // namespace aloft
