// Functions that take a parameter: what training may have done to it, it has done to what they
// take.
#pragma once

#include <map>
#include <vector>

#include "observe/compare/pairing.h"

namespace aloft::compare {

struct TakenParameter {
  const Entry* entry = nullptr;  // of the first run: the module that has it
  const Record* parameter = nullptr;
};

class TakenParameters {
 public:
  // The pairs outlive this.
  explicit TakenParameters(const Pairs& pairs);
  // The parameter that a function takes in both runs, by the figures of both: a dump does not say
  // which one it is. It may be cast on the way. Null of what is none, or of modules.
  TakenParameter of(const EntryPair& call, const RecordPair& taken) const;

 private:
  struct Known {
    const Entry* entry;
    const RecordPair* records;
  };
  std::map<double, std::vector<Known>> known_;  // by how many elements they have
};

}  // namespace aloft::compare
