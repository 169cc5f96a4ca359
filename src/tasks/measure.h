// A number that an evaluation comes to besides the loss.
#pragma once

#include <string>
#include <vector>

namespace aloft {

struct Measure {
  std::string name;  // as metrics.jsonl has it, behind "val_": "accuracy"
  double value = 0;
  std::string text;  // for people: "accuracy 98.61 %"
};

}  // namespace aloft
