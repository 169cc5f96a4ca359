// Runs one prepared kernel where nothing but its operands exists: each operand, each result and the
// scratch lies in guarded memory of its own, scratch and results hold poison, and the arenas are
// closed. Operands that begin at the same byte (in place) stay one memory; a result that overlaps
// another buffer in any other way is refused. The kernel runs twice, with other poison and at the
// other edge of the pages; it must leave the same bits. So a byte outside that is touched, a result
// that is left unwritten and an answer that depends on uninitialised memory are all found, and
// named.
//
// Asked for by ALOFT_CHECK_MEMORY=1: a training run under it is some ten to a hundred times slower
// and gives the same bits.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/guarded_memory.h"
#include "runtime/kernel.h"

namespace aloft {

// Whether the environment asks for the check (read at every call; cheap).
bool is_memory_check_wanted();

// What a finding is called.
struct IsolatedNames {
  std::string instruction;
  std::string kernel;
  std::vector<std::string> in, out;  // as many as the call has; empty: "operand 0" ...
  std::string scratch = "scratch";
};

// Runs `kernel` as kernel.run(args) would. `closed`: memory that must not be touched meanwhile.
// InternalError E9000 with the instruction, the buffer and the offset. A read outside faults: the
// same text goes to stderr and the process ends with exit code 70.
void run_isolated(const Prepared& kernel, const CallSpec& call, const RunArgs& args,
                  const IsolatedNames& names, std::span<GuardedMemory* const> closed = {});

}  // namespace aloft
