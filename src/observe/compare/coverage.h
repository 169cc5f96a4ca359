// How much of two dumps was compared, and what one of them lacks as a whole.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "observe/compare/difference.h"

namespace aloft::compare {

struct Coverage {
  // Tensors with a partner, and with those that have none in the run that has more of them: of
  // modules, of functions where no modules were compared, for programs differ in functions.
  std::size_t compared = 0, all = 0;
  // A pass that one run has and the other does not, or that most calls have no partner: "the second
  // run has no backward pass"; "" where there is nothing of that kind.
  std::string lacks;
};

// What the levels of the dumps explain is not counted: functions beside a dump of modules, and
// those of the backward pass where none have partners. Of micro-batches a module's calls are one.
Coverage coverage_of(const DumpFile& npu, const DumpFile& bench, const Pairs& pairs,
                     const std::vector<Compared>& compared);

}  // namespace aloft::compare
