// Which dumps of two trees of folders are of the same step and process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"

namespace aloft::compare {

struct DumpPair {
  Path npu, bench;         // both a dump.json
  std::string step, rank;  // "" where the folders do not say
  // Of the step, where both are of one step, as their folders say; else 0.
  std::int64_t number = 0;
};

// Either a dump.json, a folder with one, a folder of processes (rank0, proc77) or of steps (step0).
// Where both have one step, or one process, these belong together whatever their names. DataError
// E0651 where a path holds no dump, or the two have nothing in common. `alone`, where it is given:
// what one of them alone has, in words: "step3 of ported", and of which there is a folder without a
// dump.json, as of a run that was ended in it: "step4 of ported has no dump.json"; "" of none.
std::vector<DumpPair> pair_dump_files(const Path& npu, const Path& bench,
                                      std::string* alone = nullptr);

}  // namespace aloft::compare
