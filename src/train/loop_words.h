// What the loops of a program say of a step, compiled or eager, as a dump's `training` has it
// (docs/probe.md).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "frontend/loop_taps.h"

namespace aloft {

class Onlooker;
class Programs;

class LoopWords {
 public:
  // An eager step says it. Results of its ops are read when the step is over: nothing waits here.
  void hear(LoopWord word, const Tensor& value, const UpdatedBy* by);
  // A run of a program that the onlooker looks on has said it.
  void add(const Programs& programs, const std::string& program, Onlooker& onlooker);
  // Null where nobody said anything.
  nlohmann::ordered_json training() const;

 private:
  struct Said {
    LoopWord word;
    std::optional<double> number;  // or
    Tensor value;
    std::optional<UpdatedBy> by;
  };
  std::vector<Said> said_;
};

}  // namespace aloft
