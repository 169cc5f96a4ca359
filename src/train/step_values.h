// What a step left to be looked at, whoever made it: compiled programs, eager calls, or both.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontend/eager_taps.h"
#include "frontend/programs.h"
#include "observe/probe/looked_at.h"
#include "train/probe_tensors.h"

namespace aloft {

class StepValues {
 public:
  // What the last eager step showed.
  void add(const EagerTaps& taps);
  // What the program's last run left, copied.
  void add(const Programs& programs, const std::string& program);
  void clear();

  // Of values that were added twice, the last.
  const std::vector<probe::LookedAt>& values() const { return values_; }
  const std::vector<double>& all() const { return all_; }  // their statistics
  TensorSource find(const std::string& tap) const;
  // Values of which only the last is here: of a function that was called several times, or of two
  // that compute something by the same name.
  const std::set<std::string>& replaced() const { return replaced_; }

 private:
  void put(probe::LookedAt value, const double* numbers, std::size_t count);

  std::vector<probe::LookedAt> values_;
  std::map<std::string, std::size_t> place_of_;  // by name
  std::vector<double> all_;
  std::set<std::string> replaced_;
  std::map<std::string, TensorSource> tensors_;  // by tap
};

// Of the value that a tap of the program shows, when a run has ended; empty where there is none.
TensorSource source_of(const Programs& programs, const std::string& program,
                       const std::string& tap);

}  // namespace aloft
