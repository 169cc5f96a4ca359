// dump.json as text: what is the same in every step is written once, the records of a step between.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "observe/probe/dump.h"

namespace aloft::probe {

class DumpText {
 public:
  // Of what `dump` has to write now: whatever it is told to keep later is not seen.
  explicit DumpText(std::shared_ptr<const Dump> dump);

  // What a step's file says besides its records.
  struct Step {
    std::string tensors = {};  // the folder of their files; empty: none is written
    // By the numbers of records (Dump::outline): what they have besides. May be shorter, or null.
    std::span<const nlohmann::ordered_json> added = {};
    nlohmann::ordered_json training = {};  // null: nothing
  };
  // The text of a step that left these numbers: that of dump->numbers(all).dump(1), with what
  // `step` adds.
  std::string of(std::span<const double> all, const Step& step) const;
  std::string of(std::span<const double> all) const { return of(all, {}); }

 private:
  // What stands before a record, and which it is.
  struct Piece {
    std::string before;
    std::size_t record;
    bool requires_grad;
    int depth;  // of objects and lists that it lies in
  };
  void put(const nlohmann::ordered_json& outline, int depth);

  std::shared_ptr<const Dump> dump_;
  std::vector<Piece> pieces_;
  std::string rest_;  // behind the last; while the pieces are made, behind the last of them
};

}  // namespace aloft::probe
