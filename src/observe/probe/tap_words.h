// Words that the names of taps are made of (passes/tap_pattern.h), for who reads a program's taps:
// "call:h.0.mlp#0.output.gradient", "parameter:h.0.ln_1.weight.update".
#pragma once

#include <string>
#include <string_view>

namespace aloft::probe {

inline constexpr std::string_view kCall = "call:", kParameter = "parameter:",
                                  kGradient = ".gradient", kUpdate = ".update";

// What stands behind the name of a parameter's value that is not the step's first (LookedAt::call).
inline std::string of_call(int call) { return "@call" + std::to_string(call); }

// Whether the text began, or ended, with the word, which is then gone from it.
inline bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}
inline bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace aloft::probe
