// Which call of one run is which of the other, and which of their records belong together.
#pragma once

#include <vector>

#include "observe/compare/dump_file.h"
#include "observe/compare/name_map.h"

namespace aloft::compare {

// Two records that should hold the same; null where a side has none.
struct RecordPair {
  const Record* npu = nullptr;
  const Record* bench = nullptr;
  // Whether both have as many elements; a weight may lie transposed, a batch be folded.
  bool has_same_size() const;
};

struct EntryPair {
  const Entry* npu = nullptr;
  const Entry* bench = nullptr;     // null where the other run has no such call
  std::vector<RecordPair> records;  // of all of npu's records, then of what only bench has
};

struct Pairs {
  std::vector<EntryPair> entries;  // in the order of npu
  std::vector<const Entry*> only_bench;
};

// The dumps outlive the result. Modules are paired by pair_modules(), their calls by number;
// functions by name and number, or, where the two runs have other names for them, by what they do
// and the shapes that they give, in order.
Pairs pair_dumps(const DumpFile& npu, const DumpFile& bench, const NameMap& map);

}  // namespace aloft::compare
