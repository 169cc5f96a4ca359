// What the ops take whose results a program takes statistics of, as its Plan says, so that a dump
// shows an op's operands without looking at any value once more.
#pragma once

#include <string>
#include <vector>

#include "observe/probe/looked_at.h"

namespace aloft::probe {

// Whether an op is there for the look alone, and computes once more what another one took in: it
// lies in that one's path (passes/taken_in.h).
inline bool is_computed_again(const Instruction& i) {
  return i.path.find('/') != std::string::npos;
}

// Which module the op is of, whether it is computed once more or not.
inline std::string module_of(const Instruction& i) { return i.path.substr(0, i.path.find('/')); }

// Notes in each result of an op what the op takes, in its order. Of an op that was taken into
// another one (a loop over elements, a norm with the sum before it, a loss with its projection) it
// is what that op itself takes. Nothing of an op for which others run, such as those of its body.
void note_operands(const Program& program, std::vector<LookedAt>& values);

}  // namespace aloft::probe
