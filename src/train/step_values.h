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
#include "train/call_numbers.h"
#include "train/probe_tensors.h"

namespace aloft {

class StepValues {
 public:
  // What the last eager step showed: behind all that programs have left, and numbered on.
  void add(const EagerTaps& taps);
  // What the program's last run left, copied. Its calls are numbered on behind those of the runs
  // before, and its variables are told from others of the same names.
  void add(const Programs& programs, const std::string& program);
  void clear();

  const std::vector<probe::LookedAt>& values() const { return values_; }
  const std::vector<double>& all() const { return all_; }  // their statistics
  TensorSource find(const std::string& tap) const;
  // Values of which only the last is here: gradients of a parameter that the step updates several
  // times, and what programs and eager calls both have by one name.
  const std::set<std::string>& replaced() const { return replaced_; }

 private:
  // What a value of the run that is added is called over the step; "" where it is left out.
  struct Called {
    std::string name;
    int call = 0;  // LookedAt::call
    // Takes the place of what the runs before have by this name, as a sum does that goes on.
    bool goes_on = false;
  };
  struct Seen {  // of a variable, in the runs so far
    bool is_read = false;
    int updates = 0;
  };

  const Called& called(const Programs& programs, const std::string& name);
  Called called_of_parameter(const Programs& programs, const std::string& name);
  Called called_of_read(const std::string& plain, Seen& seen, std::string_view module);
  void begin_run(const std::vector<probe::LookedAt>& looked_at, const std::vector<Tap>& taps);
  void put(probe::LookedAt value, const double* numbers, std::size_t count, bool goes_on = false);

  std::vector<probe::LookedAt> values_;
  std::map<std::string, std::size_t> place_of_;  // by name
  std::vector<double> all_;
  std::set<std::string> replaced_;
  std::map<std::string, TensorSource> tensors_;  // by tap
  CallNumbers numbers_;
  StateTable variables_;
  std::map<VariablePtr, Seen> seen_;
  std::size_t order_ = 0;  // behind all that was computed so far
  // Of the run that is added: by the names that its program has, and what it updates.
  std::map<std::string, Called> names_;
  std::vector<VariablePtr> updated_;
};

// Of the value that a tap of the program shows, when a run has ended; empty where there is none.
TensorSource source_of(const Programs& programs, const std::string& program,
                       const std::string& tap);

}  // namespace aloft
