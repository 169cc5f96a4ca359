// The memory of a Plan: its arenas, and where its variables lie.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "exec/memory_check.h"
#include "exec/place.h"
#include "plan/plan.h"
#include "runtime/device.h"
#include "types/variable.h"

namespace aloft {

class PlanMemory {
 public:
  // Allocates the plan's arenas on the plan's `devices`, of which the first runs its programs, and
  // moves the variables into them. `check`, if any, brings the memory that it watches. Errors as of
  // Executor's constructor. `plan` and `check` must outlive it.
  PlanMemory(const Plan& plan, std::vector<Device*> devices,
             const std::map<Name, VariablePtr>& variables, MemoryCheck* check);

  // An empty buffer where the plan has none of it.
  Buffer arena(const ArenaAt& a) const;
  // Where a program's buffer lies.
  Buffer buffer_of(const PlannedBuffer& planned, const VariablesOf& variables) const;
  // Who says whether the variable is being written. Under hold_places().
  Place& place_of(const StateSlot& slot) const;

 private:
  // A variable that stays where another executor placed it.
  struct Shared {
    Buffer buffer;
    std::shared_ptr<Place> place;
  };
  void find_shared(const std::map<Name, VariablePtr>& variables);
  void make_arenas(const std::map<Name, VariablePtr>& variables);
  std::map<ArenaAt, bool> used_arenas() const;
  void need_memory(const std::map<ArenaAt, bool>& is_used,
                   const std::map<Name, VariablePtr>& variables) const;
  void allocate(const ArenaAt& arena, std::size_t bytes,
                const std::map<Name, VariablePtr>& variables);
  bool set_aside(const ArenaAt& arena, const std::map<Name, VariablePtr>& variables) const;
  void adopt(const ArenaAt& arena, const std::map<Name, VariablePtr>& variables);
  void adopt_shards(const std::map<Name, VariablePtr>& variables);
  Variable& variable_of(const StateSlot& slot, const std::map<Name, VariablePtr>& variables) const;
  Device& device() const { return *devices_.front(); }

  const Plan& plan_;
  std::vector<Device*> devices_;
  MemoryCheck* check_;
  std::map<ArenaAt, Buffer> arenas_;
  std::shared_ptr<Place> place_;   // alive: our arenas' variables must not move
  std::map<Name, Shared> shared_;  // by id
};

}  // namespace aloft
