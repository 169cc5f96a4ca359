// How settings say the course of the learning rate: names of schedules, and a warm-up as a share of
// the run.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/config_check/side.h"

namespace aloft::config_check {

// The schedule that a name stands for, as recipes call it: "cosine" of "WarmupCosineLR".
std::string plain_schedule(std::string_view name);

// A warm-up of two sides, of which one at least says it as a share of its steps.
struct Warmups {
  Setting a, b;                  // that decide
  std::string a_value, b_value;  // for people: "0.1 x 1000 = 100"
  // Whether they are of one length; nothing where a side does not say of how many steps the share
  // is. Then `advice` says what would have to be.
  std::optional<bool> are_equal;
  std::string advice = {};
};
// Taken out of both sides' settings. Nothing where neither says a share, or both do by one name, or
// a side says nothing of a warm-up.
std::optional<Warmups> take_warmups(std::vector<Setting>& a, std::vector<Setting>& b);

}  // namespace aloft::config_check
