// A GPT that a test can afford, and tokens for it.
#pragma once

#include "e2e/training.h"
#include "models/gpt2.h"

namespace aloft::e2e {

struct TinyGpt : models::Gpt2 {
  static constexpr int kVocab = 29, kContext = 12;
  TinyGpt() : Gpt2(config()) {}
  static models::Gpt2Config config() {
    models::Gpt2Config c;
    c.layers = 2;
    c.heads = 2;
    c.dim = 40;
    c.vocab = kVocab;
    c.context = kContext;
    c.dropout = 0.1;
    return c;
  }
};

// [rows, kContext] of tokens and of targets, others each step.
inline Batch sentences(int step, int rows) {
  std::vector<std::int32_t> tokens, targets;
  for (int i = 0; i < rows * TinyGpt::kContext; ++i) {
    tokens.push_back((7 * i + 3 * step + i * i) % TinyGpt::kVocab);
    targets.push_back((5 * i + step) % TinyGpt::kVocab);
  }
  const Shape shape{rows, TinyGpt::kContext};
  return {from_ints(tokens, shape), from_ints(targets, shape)};
}

}  // namespace aloft::e2e
