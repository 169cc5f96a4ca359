// How far updates that agree may have left the parameters of two runs apart, behind some steps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "observe/compare/dump_file.h"

namespace aloft::compare {

struct Compared;

// Where a gradient is next to nothing its sign is rounding, and a rule that divides by its size
// moves the element by the whole rate either way: of an update some share is another one, although
// its length is the same. Parameters that were trained apart are so much apart, and what is
// computed from them is. Without records of updates nothing is known, and nothing allowed.
class Drift {
 public:
  // Before a step of the first run is compared. A parameter that stands under several names (a head
  // that is the table of embeddings) may have its updates under one of them: another with the same
  // shape and figures has moved as far.
  void begin(const DumpFile& npu);
  // Behind it; `step`: its number, from 0 on.
  void end(const std::vector<Compared>& all, std::int64_t step);

  // Of a parameter, relative to its length.
  double of(const Entry& entry, const Record& parameter) const;
  // The most among matrices.
  double typical() const { return typical_; }
  // Which share of an update rounding may have made, by the coarsest unit of the step's types.
  double share(double unit) const;
  bool is_known() const { return step_ >= 0; }

 private:
  void find_same(const DumpFile& npu);

  std::map<std::string, double> moved_;      // of a parameter, by its path: a length
  std::map<std::string, double> last_;       // how long its last update was
  std::map<std::string, std::string> same_;  // the name under which one without updates has them
  std::int64_t step_ = -1;
  double typical_ = 0;
};

}  // namespace aloft::compare
