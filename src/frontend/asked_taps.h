// What somebody asks to see of a step, whatever runs it: Programs::tap and tap_calls in a compiled
// program, EagerTaps of eager calls.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/module.h"

namespace aloft {

// What calls of modules take and give.
struct AskedCalls {
  nn::Module* model = nullptr;  // of it and those below; null: of whatever is called
  std::string prefix;           // of what each tap shows: shown_prefix() in passes/tap_pattern.h
  std::function<bool(const std::string&)> wanted = {};  // of these paths alone; none: of all
};

struct AskedTaps {
  std::vector<std::string> patterns;  // passes/tap_pattern.h
  std::vector<AskedCalls> calls = {};
};

}  // namespace aloft
