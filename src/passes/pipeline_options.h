// What a caller may change about the passes of a program.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace aloft {

class Graph;

struct PipelineOptions {
  std::vector<std::string> skip;       // names of optional_passes()
  std::vector<std::string> also = {};  // of passes that run on request alone
  std::function<void(int number, std::string_view pass, const Graph&)> dump;  // after each pass
};

}  // namespace aloft
