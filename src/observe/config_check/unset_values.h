// What settings come to that say that nothing is set (`max_steps: -1`), are not read as the others
// stand, or are not there at all.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/config_check/side.h"

namespace aloft::config_check {

// Whether it is None: of JSON, or the word.
bool is_none(const Setting& s);

// "num_train_epochs = 3", as `decided_by` has it.
std::string said_by(const Setting& s);

// A side's settings with what counts in their values: `-1` of a clipping is 0 (none is done), None
// of `lr_decay_iters` is the run's steps, a recipe's `schedule.final_lr` of -1 is a tenth of its
// rate. `written` keeps what stood there, and `decided_by` says of a value that is not known which
// setting has it (unset_values.inc). Those that another one overrules are left out (epochs beside
// Hugging Face's `max_steps`), or have the value that it leaves them, with a `note` (a warm-up of
// its schedule "constant").
std::vector<Setting> with_values_that_count(const std::vector<Setting>& settings);

// Of a setting that a side does not say: what the program takes whose settings these are, and its
// name (program_defaults.inc). Nothing where the program is not known by them.
struct ProgramDefault {
  std::string_view program, value;
};
std::optional<ProgramDefault> default_of(const std::vector<Setting>& settings, const Setting& s);

}  // namespace aloft::config_check
