// The Plan: what is executed, as pure data. Named programs over one State; each program is a list
// of instructions over buffers at fixed offsets of a few arenas. Printable, diffable, serialisable;
// exec runs it, everything else only reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/name.h"
#include "plan/placement.h"
#include "types/attrs.h"
#include "types/call.h"
#include "types/phase.h"
#include "types/shape.h"
#include "types/variable.h"

namespace aloft {

enum class Arena : std::uint8_t {
  Parameters,   // weights and buffers of the model
  Optimizer,    // moments, master weights
  Control,      // loss scale, counters, random state
  Gradients,    // sums of gradients that outlive a program
  Activations,  // everything that lives and dies within a program, gradients too; scratch
  Staging,      // inputs of the programs
};
inline constexpr Arena kAllArenas[] = {Arena::Parameters, Arena::Optimizer,   Arena::Control,
                                       Arena::Gradients,  Arena::Activations, Arena::Staging};

constexpr std::string_view name_of(Arena a) {
  constexpr std::string_view names[] = {"parameters", "optimizer",   "control",
                                        "gradients",  "activations", "staging"};
  return names[static_cast<int>(a)];
}

// An arena where it lies: a block of memory on one of the Plan's devices, in one of its spaces.
struct ArenaAt {
  Arena arena = Arena::Parameters;
  Space space = Space::Device;
  int device = 0;  // 0: the one that the programs run on
  ArenaAt(Arena a) : arena(a) {}
  ArenaAt(Arena a, const Placement& p) : arena(a), space(p.space), device(p.shard.index) {}
  friend bool operator==(const ArenaAt&, const ArenaAt&) = default;
  friend auto operator<=>(const ArenaAt& a, const ArenaAt& b) {
    return std::tuple(a.device, a.space, a.arena) <=> std::tuple(b.device, b.space, b.arena);
  }
};

// "optimizer", in the host's memory "optimizer@host", on device 1 "optimizer@1".
std::string name_of(const ArenaAt& a);

// A range of an arena. Several tensors may share one (views, in-place results).
struct PlannedBuffer {
  std::string name;  // what it holds: a variable's id, an input, the identity of its first writer
  Arena arena = Arena::Activations;
  std::size_t bytes = 0;
  Placement placement;
  // Instructions, in the list, between which others must not overwrite it; with several streams all
  // those that are not in any order with one that uses it count as well (plan/happens_before.h).
  int first = 0, last = 0;
  // Of an input: as often its bytes are there, by turns for one run and the next.
  int homes = 1;

  ArenaAt arena_at() const { return {arena, placement}; }
};

// A tensor as an instruction sees it.
struct BufferRef {
  int buffer = -1;
  TensorType type;
};

// What moves bytes between buffers, of whatever spaces and devices; no kernel runs it.
inline constexpr std::string_view kCopyOp = "copy";

// Bytes that an instruction of the op "copy" moves: from its operand's byte `from` to its result's
// byte `to`, as many as they have.
struct Copy {
  std::size_t from = 0, to = 0;
};

// It reads what `in` names and writes what `out` and `scratch` name, nothing else. Those of one
// stream run in the order of the list; between streams there is the order that events make.
struct Instruction {
  CallSpec call;
  std::string kernel;                     // chosen kernel, "cpu.matmul"
  ProductForm form = ProductForm::Plain;  // how it computes: the call's form, or plainly
  std::vector<std::string> refusals;      // why faster kernels did not take the call
  std::vector<BufferRef> in, out;
  int scratch = -1;                  // buffer of the kernel's scratch
  std::string identity;              // node identity, survives passes
  std::vector<std::string> members;  // of a fused call: the identities of what it stands for
  std::string path, file;            // provenance
  int line = 0;
  Phase phase = Phase::Forward;
  int stream = 0;          // of the device that the program runs on
  std::vector<int> waits;  // events of the program that have happened before it begins
  int signals = -1;        // the event that happens when it has ended; -1: none
  std::optional<Copy> copy;
};

struct NamedRef {
  std::string name;
  BufferRef ref;
  bool is_tap = false;
};

// It begins on all of its streams when what was handed over before has been done, and has ended
// when all of them are done.
struct Program {
  std::string name;
  std::vector<Name> symbols;  // values are given at each run, in this order
  std::vector<std::int64_t> bounds;
  std::vector<PlannedBuffer> buffers;
  std::vector<Instruction> instructions;
  std::vector<NamedRef> inputs, outputs;
  std::size_t activation_lower_bound = 0;  // no placement could need less
};

// A variable of the State. Programs, buffers and whoever brings the memory know it by its id; the
// name is for people, and two models may have the same.
struct StateSlot {
  Name id, name;
  TensorType type;
  StateClass cls = StateClass::Parameter;
  bool requires_grad = true, is_norm = false;
  Arena arena = Arena::Parameters;
  // Its parts, one for each shard.
  std::vector<Placement> parts = {Placement{}};

  // The bytes of part k, and where they lie.
  ByteRange range(std::size_t k) const { return range_of(parts[k].shard, type.max_bytes()); }
  ArenaAt arena_at(std::size_t k) const { return {arena, parts[k]}; }
};

struct Plan {
  std::string backend;
  int threads = 1;
  std::vector<StateSlot> state;
  std::vector<Program> programs;
  std::map<ArenaAt, std::size_t> arena_bytes;
  std::map<std::string, std::string> choices;  // what was measured once (plan/choices.h)

  // Sum of the arenas in the memory of the device that the programs run on: what exec allocates
  // there, to the byte.
  std::size_t peak_bytes() const;
  int devices() const;  // that hold an arena
  const Program* find(std::string_view program) const;
  // The variable that a program's buffer holds; null for inputs and what lives within a program.
  // It looks through all of them: who asks about many buffers makes a VariablesOf.
  const StateSlot* variable_in(const PlannedBuffer& buffer) const;
  // Hash of everything that determines results: programs without offsets, choices.
  std::string signature() const;
};

// The variables of a plan, which must stay as it is meanwhile, by the buffers that hold them.
class VariablesOf {
 public:
  explicit VariablesOf(const Plan& plan);
  // As Plan::variable_in.
  const StateSlot* in(const PlannedBuffer& buffer) const;

 private:
  std::unordered_map<std::string_view, const StateSlot*> by_id_;
};

Arena arena_of(StateClass cls);

// Gives the program's activations their lives and their offsets; scratch counts as one.
void place_activations(Program& program);

// Puts the program into the plan: merges its state, assigns state offsets, widens arenas. Program
// buffers of variables get the variables' offsets.
void add_program(Plan& plan, Program program, const std::vector<StateSlot>& state);

// JSON text, indented for people or (below 0) in one line, and back; from_json checks every index,
// offset and size: DataError E0640.
std::string to_json(const Plan& plan, int indent = 1);
Plan plan_from_json(std::string_view text);

// The readable form: arenas, peak with the tensors that make it, instructions, lifetimes.
std::string print(const Plan& plan);
// In a line, of a device: "the plan of a step (parameters 3.1 MiB, activations 20.0 MiB)".
std::string arenas_text(const Plan& plan, int device = 0);

// Refuses (verify.cpp) what shares memory and must not, references out of range, types larger than
// buffers, lengths that are not the program's, what is read or returned and was never written or is
// gone, kernels on memory that is not at hand, races between streams: InternalError.
void verify(const Plan& plan);

}  // namespace aloft
