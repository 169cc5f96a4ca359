// Which call of a function in one run is which in the other.
#pragma once

#include <map>
#include <set>
#include <string>

#include "observe/compare/dump_file.h"

namespace aloft::compare {

class FunctionPairs {
 public:
  // Both dumps outlive this; `modules`: the paths of the first run's modules, and whose partners
  // they are in the second. Where both dumps say which module calls a function, calls are paired
  // within the modules that are the same: by what they do, how many elements they give, and what
  // feeds them (alike_calls.h). Where they do not say it, calls are the same by name, as long as
  // both runs have as many of a name and size, else by what feeds them; and where the runs have
  // other names, the longest rows of calls are looked for that do the same (linear, layer_norm,
  // gelu) and give as many elements, in the same order. Of a run that has the calls of all
  // micro-batches, beside one with the last one's alone, those of the last are looked at.
  FunctionPairs(const DumpFile& npu, const DumpFile& bench,
                const std::map<std::string, std::string>& modules);
  // Null where there is none.
  const Entry* partner_of(const Entry& npu) const;
  // Whether a call of the first run gives the same sum as its partner, made of other parts
  // (regrouped_sums.h): what the two take is not the same.
  bool takes_other_parts(const Entry& npu) const { return regrouped_.contains(&npu); }

 private:
  std::map<const Entry*, const Entry*> partners_;
  std::set<const Entry*> regrouped_;
};

}  // namespace aloft::compare
