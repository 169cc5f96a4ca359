// Which call of a function in one run is which in the other.
#pragma once

#include <map>

#include "observe/compare/dump_file.h"

namespace aloft::compare {

class FunctionPairs {
 public:
  // Both outlive this. Calls are the same by name and number where most names are known to both
  // runs; else the longest rows of calls are looked for that do the same (linear, layer_norm,
  // gelu) and give as many elements, in the same order.
  FunctionPairs(const DumpFile& npu, const DumpFile& bench);
  // Null where there is none.
  const Entry* partner_of(const Entry& npu) const;

 private:
  std::map<const Entry*, const Entry*> partners_;
};

}  // namespace aloft::compare
