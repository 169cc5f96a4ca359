// What settings say of rotary positions, in the words of config.json, and what that comes to for
// the op (types/rotary_scaling.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/family.h"
#include "types/rotary_scaling.h"

namespace aloft::models {

// Numbers that are 0, and lists that are empty, were not said.
struct RotarySettings {
  std::string kind = "default";
  double base = 10000;
  std::int64_t width = 0;    // features of a head that turn
  std::int64_t context = 0;  // longest sequence
  double factor = 0;
  std::int64_t original = 0;  // longest sequence before it was stretched; 0: context
  double low = 0, high = 0;
  double fast = 0, slow = 0, mscale = 0, mscale_all = 0;
  bool truncate = true;
  double magnitude = 0;
  std::vector<double> within = {}, beyond = {};
};

// The kinds: those of the op, and "dynamic", whose angles are stretched beyond the context alone,
// where no sequence of ours goes.
std::vector<std::string_view> rotary_kinds();

// What is not said follows from the rest, as transformers has it.
RotaryScaling scaling_of(const RotarySettings& s);

// Settings that are no scaling.
std::optional<Misfit> rotary_misfit(const RotarySettings& s);

}  // namespace aloft::models
