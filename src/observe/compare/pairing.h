// Which call of one run is which of the other, and which of their records belong together.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "observe/compare/dump_file.h"
#include "observe/compare/name_map.h"

namespace aloft::compare {

// Two records that should hold the same; null where a side has none.
struct RecordPair {
  const Record* npu = nullptr;
  const Record* bench = nullptr;
  // By what they were found to belong together: "name", "map", "structure" (of their modules, or
  // of what functions do where), "fused" (one module and several), "synonym" (of another
  // framework's parameters) or "size" (at another place of the call); "" of none.
  std::string_view matched_by = {};
  double factor = 1;  // by which the first run's elements are multiplied when they are looked at
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
  std::deque<Entry> made;     // entries of several modules as one (fused_modules.h)
  std::vector<LineFit> fits;  // of each line of the map
  // Modules, and parameters ("fc.gamma"), that are the same by other than their names.
  struct Renamed {
    std::string npu, bench;
    std::string_view by;
  };
  std::vector<Renamed> renamed = {};
};

// The dumps outlive the result. Modules are paired by pair_modules(), their calls by number;
// functions by the module that calls them, what they do, the sizes that they give and what feeds
// them (function_pairs.h); values, and the calls that have them, as the map says. Of a run that
// sums over micro-batches, and has the calls of the last alone, these belong to the last of the
// other's. One module beside several (fused_modules.h) is a pair of its own, behind those of the
// several. UserError E0728 for a map of which no line names something that both dumps have.
Pairs pair_dumps(const DumpFile& npu, const DumpFile& bench, const NameMap& map);

}  // namespace aloft::compare
