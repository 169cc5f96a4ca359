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
  // How far a parameter may be apart, relative to its own size.
  struct Limits {
    double length = 0;   // of the difference of two tensors: of their lengths
    double element = 0;  // of one element: of the largest
    double typical = 0;  // of the median of all elements: of their root mean square
  };

  // Before a step is compared; `step`: its number, from 0 on. A parameter that stands under several
  // names (a head that is the table of embeddings) may have its updates under one of them: another
  // with the same shape and figures has moved as far. Where this is the first that is looked at,
  // the steps before it are taken to have moved parameters as it does.
  void begin(const DumpFile& npu, const DumpFile& bench, std::int64_t step = 0);
  // Behind it.
  void end(const std::vector<Compared>& all, std::int64_t step);

  // Of a parameter, relative to its length.
  double of(const Entry& entry, const Record& parameter) const;
  // The same for whoever has the elements: one whose gradient is rounding may have moved otherwise
  // by twice what the largest did in each step, but only few have; the others follow their
  // gradients, which are apart by rounding and by what their parameters are apart.
  Limits limits(const Entry& entry, const Record& parameter) const;
  // The most among matrices.
  double typical() const { return typical_; }
  // Which share of an update rounding may have made, by the coarsest unit of the step's types.
  double share(double unit) const;

 private:
  struct Moved {
    double apart = 0;   // the length by which it may be another
    double length = 0;  // of all updates, added up
    double reach = 0;   // the largest elements of all updates, added up
    double smooth = 0;  // `apart` without elements whose gradient is rounding
    double pushed = 0;  // `apart` where only the first step's had none to go by
    double steps = 0;
    double last = 0;  // how long its last update was
  };
  // What a step adds to a parameter.
  struct Update {
    std::string name;
    double length = 0, reach = 0;
    double apart = 0;  // how far those of the two runs were apart, relative
  };

  void move(const std::vector<Update>& updates, std::int64_t steps, double unit);
  void measure();
  void find_same(const DumpFile& npu);
  const Moved* moved(const Entry& entry, const Record& parameter) const;

  std::map<std::string, Moved> moved_;       // of a parameter, by its path
  std::map<std::string, double> matrices_;   // how long those of the step are
  std::map<std::string, std::string> same_;  // the name under which one without updates has them
  std::int64_t step_ = -1;
  double typical_ = 0, smooth_ = 0;
};

}  // namespace aloft::compare
