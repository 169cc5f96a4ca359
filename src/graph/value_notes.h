// What is known of a value beside its type, for as long as there is the value: precision policies
// go by it (passes/casting_emitter.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace aloft {

struct HookEntry;

struct ValueNotes {
  bool is_wide = false;  // a loss, what was asked for in f32, or what was computed from such
  std::vector<std::string> parameters = {};     // names of those that it is, moved or not
  std::optional<double> number = std::nullopt;  // an f32 constant without axes, not of a low type
  std::vector<std::shared_ptr<HookEntry>> hooks = {};  // on its gradient (frontend/hooks.h)
};

}  // namespace aloft
