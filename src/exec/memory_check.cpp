#include "exec/memory_check.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "plan/lifetime.h"

namespace aloft {
namespace {

constexpr std::uint8_t kDead = 0xff;  // NaN in every float type

std::string label(const Program& program, int instruction) {
  const Instruction& ins = program.instructions[instruction];
  return program.name + " " + std::to_string(instruction) + ", " + ins.identity;
}

std::string label(const PlannedBuffer& b) {
  return b.name + " (" + std::string(name_of(b.arena)) + " at " +
         std::to_string(b.placement.offset) + ")";
}

}  // namespace

namespace {

class GuardedBlock : public Block {
 public:
  GuardedBlock(Device& device, std::shared_ptr<GuardedMemory> memory)
      : Block(device, Space::Device, memory->data(), memory->bytes()), memory_(std::move(memory)) {}

 private:
  std::shared_ptr<GuardedMemory> memory_;
};

}  // namespace

MemoryCheck::MemoryCheck(const Plan& plan, Device& device) : plan_(plan), device_(device) {
  if (!device.features().shares_host_memory)
    throw UserError("E0700", "ALOFT_CHECK_MEMORY cannot watch what runs on this device")
        .saw(device.name())
        .need("a device that works on the host's memory, as the cpu does")
        .advice("unset ALOFT_CHECK_MEMORY, or run on the cpu");
}

Buffer MemoryCheck::allocate(Arena arena, std::size_t bytes) {
  auto memory = std::make_shared<GuardedMemory>(bytes, GuardedMemory::Side::Back, kDead);
  places_[arena].memory = memory;
  return Buffer(std::make_shared<GuardedBlock>(device_, memory));
}

// Null where the buffer is a variable that lies in another executor's arena, or elsewhere than on
// the device.
std::byte* MemoryCheck::home(const PlannedBuffer& b) const {
  if (b.arena_at() != b.arena) return nullptr;
  const auto it = places_.find(b.arena);
  return it == places_.end() || !it->second.memory ? nullptr
                                                   : it->second.memory->data() + b.placement.offset;
}

bool MemoryCheck::is_state(const PlannedBuffer& b) const { return plan_.variable_in(b) != nullptr; }

void MemoryCheck::begin(const Program& program) {
  for (const PlannedBuffer& b : program.buffers) {
    const bool dies = b.arena == Arena::Activations || b.arena == Arena::Gradients;
    if (dies && b.bytes > 0 && !is_state(b)) std::memset(home(b), kDead, b.bytes);
  }
}

// A buffer that an instruction is given must be alive there.
void MemoryCheck::note(const Program& program, int instruction, int buffer) {
  const PlannedBuffer& b = program.buffers[buffer];
  if (instruction < b.first || instruction > b.last)
    throw InternalError("an instruction is given a buffer outside its life")
        .line("instr", label(program, instruction))
        .line("buffer", label(b))
        .saw("alive from " + std::to_string(b.first) + " to " + std::to_string(b.last));
  std::size_t& reached = places_[b.arena].reached;
  reached = std::max(reached, aligned(b.placement.offset + b.bytes));
}

void MemoryCheck::run(const Program& program, int instruction, const Prepared& kernel,
                      const RunArgs& args) {
  const Instruction& ins = program.instructions[instruction];
  IsolatedNames names{label(program, instruction), ins.kernel, {}, {}, {}};
  for (const BufferRef& r : ins.in) {
    note(program, instruction, r.buffer);
    names.in.push_back(label(program.buffers[r.buffer]));
  }
  for (const BufferRef& r : ins.out) {
    note(program, instruction, r.buffer);
    names.out.push_back(label(program.buffers[r.buffer]));
  }
  if (ins.scratch >= 0) {
    note(program, instruction, ins.scratch);
    const PlannedBuffer& scratch = program.buffers[ins.scratch];
    names.scratch = label(scratch);
    if (scratch.bytes != kernel.scratch_bytes())
      throw InternalError("a kernel's scratch has another size than planned")
          .line("instr", names.instruction)
          .saw(std::to_string(kernel.scratch_bytes()) + " bytes")
          .need(std::to_string(scratch.bytes));
  } else if (kernel.scratch_bytes() > 0) {
    throw InternalError("a kernel's scratch was not planned").line("instr", names.instruction);
  }
  std::vector<GuardedMemory*> arenas;
  for (const auto& [arena, place] : places_)
    if (place.memory) arenas.push_back(place.memory.get());
  run_isolated(kernel, ins.call, args, names, arenas);
  for (const PlannedBuffer& b : program.buffers)
    if (b.last == instruction && b.bytes > 0 && !is_state(b) &&
        (b.arena == Arena::Activations || b.arena == Arena::Gradients))
      std::memset(home(b), kDead, b.bytes);
}

std::size_t MemoryCheck::reached(Arena arena) const {
  const auto it = places_.find(arena);
  return it == places_.end() ? 0 : it->second.reached;
}

}  // namespace aloft
