// overflow.json: in which op each step that was looked at stops to be finite, whoever makes the
// steps. docs/probe.md is the page.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "frontend/eager_taps.h"
#include "recipe/recipe.h"

namespace aloft {

inline constexpr const char* kOverflowFile = "overflow.json";

// probe::OverflowFinder::first() of what an eager step showed; null: everything was finite.
nlohmann::ordered_json first_overflow(const EagerTaps& taps);

// Whole at any time. EnvironmentError E0603 of all that writes.
class OverflowFile {
 public:
  // Into `folder`, which is made; nothing is written yet. `precision`: the steps', as the
  // recipe has it; empty: it does not say.
  OverflowFile(Path folder, std::string precision);

  // Of a run that goes on: what an earlier one found in the steps before `behind` stays.
  void take_up(const ProbeSection& probe, std::int64_t behind);
  // Step `step`, counted from 0, was looked at; `first`: null where everything was finite; `more`:
  // what else is known of a step that was not, by its keys.
  void add(std::int64_t step, nlohmann::ordered_json first, nlohmann::ordered_json more = {});
  // Steps from `step` on are made once more, with other data.
  void undo(std::int64_t step);
  // As it is now; `is_flushed`: onto the disk.
  void write(bool is_flushed = false);
  // The same where the file is older.
  void finish();

 private:
  Path folder_;
  std::string precision_;
  std::int64_t steps_ = 0;  // that were looked at
  nlohmann::ordered_json found_ = nlohmann::ordered_json::array();
  bool is_written_ = false;  // as it is
  double written_at_ = 0;    // seconds on the clock
};

}  // namespace aloft
