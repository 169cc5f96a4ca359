#include "exec/plan_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "exec/places.h"
#include "plan/lifetime.h"
#include "runtime/sharded_block.h"

namespace aloft {

namespace {

// Offsets are multiples of what plans align to, whatever the device would like.
void need_alignment(const Device& device) {
  const std::size_t needed = device.features().alignment;
  if (kAlignment % std::max<std::size_t>(needed, 1) == 0) return;
  throw EnvironmentError("E0412", "no plan runs on " + device.name() +
                                      ", whose buffers must be aligned to more than plans align to")
      .saw(std::to_string(kAlignment) + " bytes in a plan")
      .need("a multiple of " + std::to_string(needed) + " bytes on " + device.name())
      .advice("another device (aloft devices)");
}

}  // namespace

PlanMemory::PlanMemory(const Plan& plan, std::vector<Device*> devices,
                       const std::map<Name, VariablePtr>& variables, MemoryCheck* check)
    : plan_(plan), devices_(std::move(devices)), check_(check), place_(std::make_shared<Place>()) {
  ensure(static_cast<int>(devices_.size()) >= plan.devices(), "a plan gets all of its devices");
  for (const Device* d : devices_) need_alignment(*d);
  const auto held = hold_places();  // two that share variables must agree on who places them
  find_shared(variables);
  make_arenas(variables);
}

Buffer PlanMemory::arena(const ArenaAt& a) const {
  const auto it = arenas_.find(a);
  return it == arenas_.end() ? Buffer() : it->second;
}

Place& PlanMemory::place_of(const StateSlot& slot) const {
  const auto other = shared_.find(slot.id);
  return other == shared_.end() ? *place_ : *other->second.place;
}

namespace {

// What another program placed must lie as this plan's programs expect it.
void check_home(const StateSlot& slot, const Buffer& there) {
  const std::size_t parts = there.block()->parts().size();
  const bool is_whole = slot.parts.size() == 1;
  if (is_whole ? parts == 0 && there.space() == slot.parts[0].space : parts == slot.parts.size())
    return;
  throw UserError("E0333", "a program expects a variable elsewhere than it lies")
      .saw("'" + slot.name.str() + "' in " +
           (parts == 0 ? std::string(name_of(there.space())) + " memory"
                       : std::to_string(parts) + " parts"))
      .need("the home that it had when the first program took it in")
      .advice("set Variable::home before the first program that uses it is compiled");
}

}  // namespace

void PlanMemory::find_shared(const std::map<Name, VariablePtr>& variables) {
  for (const auto& [id, v] : variables) {
    if (!v->buffer) continue;
    if (&v->buffer->device() != &device())
      throw UserError("E0331", "a program meets a variable of another device")
          .saw("'" + v->name.str() + "' on " + v->buffer->device().name())
          .need("variables on " + device().name() + ", where the program runs")
          .advice("make the model and compile its step under one DeviceScope");
    if (std::shared_ptr<Place> place = v->buffer->block()->place.lock())
      shared_[id] = {*v->buffer, std::move(place)};
  }
  for (const StateSlot& slot : plan_.state)
    if (const auto it = shared_.find(slot.id); it != shared_.end())
      check_home(slot, it->second.buffer);
}

// All but those whose every variable lies elsewhere.
std::map<ArenaAt, bool> PlanMemory::used_arenas() const {
  std::map<ArenaAt, bool> is_used = {
      {Arena::Gradients, true}, {Arena::Activations, true}, {Arena::Staging, true}};
  for (const StateSlot& slot : plan_.state)
    if (!shared_.contains(slot.id))
      for (std::size_t k = 0; k < slot.parts.size(); ++k) is_used[slot.arena_at(k)] = true;
  return is_used;
}

// Refused before any of it is there where it never can be.
void PlanMemory::need_memory(const std::map<ArenaAt, bool>& is_used,
                             const std::map<Name, VariablePtr>& variables) const {
  std::vector<double> needed(devices_.size(), 0);
  for (const auto& [arena, bytes] : plan_.arena_bytes)
    if (arena.space == Space::Device && is_used.contains(arena))
      needed[static_cast<std::size_t>(arena.device)] += static_cast<double>(bytes);
  double moved = 0;  // what goes back where the variables are now
  for (const StateSlot& slot : plan_.state)
    if (!shared_.contains(slot.id) && variables.contains(slot.id))
      moved += static_cast<double>(slot.type.max_bytes());
  for (std::size_t d = 0; d < devices_.size(); ++d)
    devices_[d]->need_memory(needed[d], arenas_text(plan_, static_cast<int>(d)),
                             "a smaller batch or model, or a lower precision", d == 0 ? moved : 0);
}

// Those of variables come first, wherever they are, each filled before the next is there: what
// moves in must not be there twice at the peak, and what moves out makes room for the others. But
// for those in parts, which need all of theirs.
void PlanMemory::make_arenas(const std::map<Name, VariablePtr>& variables) {
  const std::map<ArenaAt, bool> is_used = used_arenas();
  need_memory(is_used, variables);
  const auto make = [&](bool with_variables) {
    for (const auto& [at, bytes] : plan_.arena_bytes) {
      if (with_variables == (at.arena == Arena::Activations || at.arena == Arena::Staging))
        continue;
      if (bytes > 0 && is_used.contains(at)) allocate(at, bytes, variables);
      adopt(at, variables);
    }
  };
  make(true);
  adopt_shards(variables);
  make(false);
}

void PlanMemory::allocate(const ArenaAt& at, std::size_t bytes,
                          const std::map<Name, VariablePtr>& variables) {
  const bool is_checked = check_ && at.device == 0 && at.space == Space::Device;
  Device& device = *devices_[static_cast<std::size_t>(at.device)];
  const auto make = [&] {
    arenas_[at] =
        is_checked ? check_->allocate(at.arena, bytes) : device.allocate_zeroed(bytes, at.space);
  };
  try {
    try {
      make();
    } catch (const EnvironmentError&) {
      if (!set_aside(at, variables)) throw;
      make();
    }
  } catch (EnvironmentError& e) {  // a block is named with the whole that it belongs to
    e.add_line("for", name_of(at) + " of a plan of " + human_bytes(plan_.peak_bytes()) + " in all");
    throw;
  }
  arenas_[at].block()->place = place_;
}

// Where a device has no room for an arena beside the variables that will move into it, these wait
// in the host's memory. False where that makes no room.
bool PlanMemory::set_aside(const ArenaAt& at, const std::map<Name, VariablePtr>& variables) const {
  if (at.device != 0 || at.space != Space::Device || device().features().shares_host_memory)
    return false;
  bool any = false;
  for (const StateSlot& slot : plan_.state) {
    if (slot.parts.size() != 1 || slot.arena_at(0) != at || shared_.contains(slot.id)) continue;
    Variable& v = variable_of(slot, variables);
    const std::size_t bytes = v.type.max_bytes();
    if (bytes == 0) continue;
    const Buffer there = device().allocate(bytes, Space::Host);
    copy_buffer(there, v.buffer->part(0, bytes));
    v.buffer = std::make_shared<Buffer>(there);
    any = true;
  }
  return any;
}

Buffer PlanMemory::buffer_of(const PlannedBuffer& planned, const VariablesOf& variables) const {
  if (!shared_.empty())
    if (const StateSlot* slot = variables.in(planned))
      if (const auto it = shared_.find(slot->id); it != shared_.end()) {
        const Buffer& there = it->second.buffer;
        const auto parts = there.block()->parts();
        return parts.empty() ? there
                             : parts[static_cast<std::size_t>(planned.placement.shard.index)];
      }
  const Buffer whole = arena(planned.arena_at());
  return whole ? whole.part(planned.bytes ? planned.placement.offset : 0, planned.bytes) : whole;
}

Variable& PlanMemory::variable_of(const StateSlot& slot,
                                  const std::map<Name, VariablePtr>& variables) const {
  const auto it = variables.find(slot.id);
  if (it == variables.end())
    throw InternalError("the plan's state has no variable '" + slot.id.str() + "'");
  Variable& v = *it->second;
  if (v.type != slot.type)
    throw InternalError("variable '" + slot.id.str() + "' has another type than the plan")
        .saw(v.type.str())
        .need(slot.type.str());
  ensure(v.buffer != nullptr, "a variable that programs run on has a value");
  return v;
}

void PlanMemory::adopt(const ArenaAt& arena, const std::map<Name, VariablePtr>& variables) {
  std::size_t freed = 0;
  for (const StateSlot& slot : plan_.state) {
    if (slot.parts.size() != 1 || slot.arena_at(0) != arena) continue;
    Variable& v = variable_of(slot, variables);
    const std::size_t bytes = v.type.max_bytes();
    // Without a byte it stays where it is: its arena may have no memory at all.
    if (shared_.contains(slot.id) || bytes == 0) continue;
    const Buffer home = arenas_.at(arena).part(slot.parts[0].offset, bytes);
    // Under the check it is poison so far.
    copy_buffer(home, v.buffer->part(0, bytes), check_ ? Before::Anything : Before::Zeros);
    v.buffer = std::make_shared<Buffer>(home);
    // Where a variable was before is free now. It goes back to the system in time: what is moved
    // must not be there twice at the peak.
    constexpr std::size_t kKept = std::size_t{8} << 20;
    if ((freed += bytes) >= kKept) {
      device().release_unused();
      freed = 0;
    }
  }
  device().release_unused();
}

void PlanMemory::adopt_shards(const std::map<Name, VariablePtr>& variables) {
  for (const StateSlot& slot : plan_.state) {
    if (slot.parts.size() < 2) continue;
    Variable& v = variable_of(slot, variables);
    if (shared_.contains(slot.id) || v.type.max_bytes() == 0) continue;
    std::vector<Buffer> parts;
    for (std::size_t k = 0; k < slot.parts.size(); ++k) {
      const ByteRange range = slot.range(k);
      const Buffer whole = arena(slot.arena_at(k));
      parts.push_back(whole ? whole.part(range.bytes ? slot.parts[k].offset : 0, range.bytes)
                            : devices_[k]->allocate(0));
    }
    Buffer home(std::make_shared<ShardedBlock>(device(), std::move(parts)));
    home.block()->place = place_;
    copy_buffer(home, v.buffer->part(0, v.type.max_bytes()));
    v.buffer = std::make_shared<Buffer>(std::move(home));
  }
}

}  // namespace aloft
