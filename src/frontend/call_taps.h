// What calls of modules take and give, tapped while a function is traced.
#pragma once

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
  explicit CallTaps(nn::Module& model);
  ~CallTaps();
  CallTaps(const CallTaps&) = delete;
  CallTaps& operator=(const CallTaps&) = delete;

  // Taps what was noted, of which `graph` is the trace: floats, by the names of call_tap() behind
  // kStatisticsPrefix (passes/tap_pattern.h).
  void mark(Graph& graph) const;

 private:
  std::vector<Hook> hooks_;
  std::map<std::string, int> calls_;  // so far, by module
  std::vector<std::pair<std::string, ValueId>> seen_;
};

}  // namespace aloft
