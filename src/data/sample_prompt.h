// What a sample of a run answers, where its model learns to answer.
#pragma once

#include <cstdint>
#include <vector>

namespace aloft {

struct SamplePrompt {
  std::vector<std::int32_t> tokens;  // up to where the answer begins, as in training
  std::vector<std::int32_t> ends;    // tokens that end an answer
};

}  // namespace aloft
