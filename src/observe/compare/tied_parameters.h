// Parameters that a run tells under two names, as of a head that shares its table.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "observe/compare/pairing.h"

namespace aloft::compare {

// msprobe writes the gradient of such a parameter under both names, other dumps under one.
class TiedParameters {
 public:
  explicit TiedParameters(const Pairs& pairs);
  // Whether a gradient that one run alone has, of the module with that path, and that msprobe
  // wrote, is one that has a partner under another name: of the same parameter, and with the same
  // figures.
  bool is_told_elsewhere(const std::string& path, const Record& r, bool is_npu) const;

 private:
  struct OfRun {
    std::map<std::pair<std::string, std::string>, const Record*> parameters;  // by path and name
    std::vector<std::pair<const Record*, const Record*>>
        told;  // with a partner: of which parameter
  };
  static void note(const Entry& e, OfRun& run);
  static void note_told(const Entry& e, const Record& r, OfRun& run);
  OfRun npu_, bench_;
};

}  // namespace aloft::compare
