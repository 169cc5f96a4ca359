// Runs a Plan's programs on a back end. Everything is prepared when a program is added: kernels,
// arenas, addresses. A run copies the inputs in, binds the lengths and calls the kernels in order:
// no allocation, lock or string of ours.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/input_turns.h"
#include "exec/one_caller.h"
#include "plan/plan.h"
#include "runtime/device.h"
#include "runtime/observer.h"
#include "types/variable.h"

namespace aloft {

class MemoryCheck;
class PlanMemory;

class Executor {
 public:
  // Allocates the plan's arenas on the device, those of shards on `peers`, the plan's other devices
  // (EnvironmentError E0401; where it can never have that much, before any of them is there; E0412
  // where a device needs more alignment than plans give), and moves the variables into them: their
  // values are copied, their buffers from now on lie in the arenas. UserError E0331 where one lies
  // on another device.
  // A variable that another executor's programs already work on stays in its place, and both work
  // on it there. Threads whose programs share variables may make executors at the same time. Every
  // state slot of the plan needs a variable of its id and type.
  // UserError E0333 where one lies otherwise than the plan says, because its home was changed after
  // a program took it in.
  Executor(Plan plan, Device& device, const std::map<Name, VariablePtr>& variables,
           std::vector<Device*> peers = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Plan& plan() const { return plan_; }

  Device& device() const { return device_; }

  // Where input `name` of `program` is to be written before the next run; an empty buffer if there
  // is none.
  Buffer input(std::string_view program, std::string_view name) const;
  // Whose turn it is among the homes of a program's inputs, and the memory of all of an input's;
  // null where they have one each.
  std::shared_ptr<InputTurns> input_turns(std::string_view program) const;
  Buffer input_homes(std::string_view program, std::string_view name) const;
  // Where output `name` lies after a run, until the next run of any program.
  Buffer output(std::string_view program, std::string_view name) const;

  // Index of a program, for run(); -1 if there is none.
  int find(std::string_view program) const;
  // Whether fewer rows than its bounds may give other bits than a program for just so many
  // (Prepared::is_cut_by_bound).
  bool is_cut_by_bound(int program) const;
  // A program's turn to run. UserError E0330 while somebody else has one: of a program of this
  // executor, which share its arenas; or of another's that writes a parameter, a buffer or a sum of
  // gradients which this program writes as well.
  class Turn;
  // `lengths` in the order of Program::symbols, each within its bound.
  // Observers of the device hear of it, and that the loop is `at` that place. Returns what one of
  // them threw, which stops nothing; null: nothing.
  std::exception_ptr run(const Turn& turn, std::span<const std::int64_t> lengths,
                         const LoopPlace& at = {});
  // The same, and throws it.
  void run(int program, std::span<const std::int64_t> lengths);

  // Called in each run before the first instruction that writes a parameter or a state of an
  // optimizer, by the thread that hands it over; it must not throw. Null: nobody.
  void before_updates(std::function<void()> hold) { hold_ = std::move(hold); }

  // An arena, for tests; an empty buffer where the plan has none.
  Buffer arena(const ArenaAt& a) const;
  // What watches over the plan's memory; null unless ALOFT_CHECK_MEMORY asked for it when this
  // executor was made.
  const MemoryCheck* memory_check() const { return check_.get(); }

 private:
  struct Step;
  struct Ready;
  void prepare(const Program& program);
  void run_watched(Ready& ready, std::span<const std::int64_t> lengths, const LoopPlace& at,
                   Telling& telling);
  Stream& stream_of(const Instruction& ins) const;
  void begin(Ready& ready);
  void run_step(Ready& ready, std::size_t i);
  void hold_before(const Ready& ready, std::size_t i) const;  // before_updates()
  Stream& wait_for(Ready& ready, const Instruction& ins);
  void run_on_stream(Ready& ready, std::size_t i);
  void end(Ready& ready);
  void find_writes(Ready& ready, const VariablesOf& variables);

  Plan plan_;
  Device& device_;
  std::unique_ptr<MemoryCheck> check_;
  std::unique_ptr<PlanMemory> memory_;
  std::vector<std::unique_ptr<Ready>> programs_;
  OneCaller caller_;
  std::function<void()> hold_;
};

class Executor::Turn {
 public:
  Turn(Executor& executor, int program);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  friend class Executor;
  void leave(std::size_t words);
  [[noreturn]] void refuse() const;
  Ready& ready_;
  const OneCaller::Entered entered_;
};

}  // namespace aloft
