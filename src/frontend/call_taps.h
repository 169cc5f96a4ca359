// What calls of modules take and give, tapped while a function is traced.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "frontend/module.h"
#include "graph/graph.h"

namespace aloft {

// While one lives, hooks on a model's modules note the values of their calls.
class CallTaps {
 public:
  // `prefix`: shown_prefix() of the taps' names (passes/tap_pattern.h); `wanted`, where it is
  // given: of these paths alone.
  CallTaps(nn::Module& model, std::string prefix,
           const std::function<bool(const std::string&)>& wanted);
  ~CallTaps();
  CallTaps(const CallTaps&) = delete;
  CallTaps& operator=(const CallTaps&) = delete;

  // Taps what was noted, of which `graph` is the trace: floats, by the names of call_tap() behind
  // the prefix.
  void mark(Graph& graph) const;

 private:
  std::string prefix_;
  std::vector<Hook> hooks_;
  std::map<std::string, int> calls_;  // so far, by module
  std::vector<std::pair<std::string, ValueId>> seen_;
};

}  // namespace aloft
