// What a language model loses on a text: in windows that overlap, so that nearly every token is
// predicted from a long past. Perplexity and bits per byte follow from it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "data/sequences.h"
#include "models/model.h"

namespace aloft {

struct TextLoss {
  double nats = 0;             // of all predicted tokens together, natural logarithm
  std::int64_t predicted = 0;  // tokens that count: not the first, which nothing precedes
  std::int64_t windows = 0;
  double mean() const { return nats / static_cast<double>(predicted); }
};

struct TextLossOptions {
  std::int64_t length = 0;  // tokens of a window; 0: the model's context
  // Tokens from one window to the next, each predicted in the first window that has it; at most
  // the length. 0: half of it.
  std::int64_t stride = 0;
  static constexpr std::int64_t kMostWindows = 1 << 16;
  std::int64_t batch = 1;  // windows at a time, 1 to kMostWindows
  int threads = 0;         // 0: all
  // Called behind each batch, with what was lost up to there; `windows`: of the whole. May throw.
  std::function<void(const TextLoss& so_far, std::int64_t windows)> on_batch = {};
};

// The model is put into evaluation mode, and its parameters move into a program's arenas; they keep
// their values. UserError E0812 for less than two tokens, E0700 for a length beyond the context or
// an option out of its range; DataError E0522 for a token outside the vocabulary; EnvironmentError
// E0401; Interrupted (interrupt.h) where a signal asks for the end.
TextLoss loss_of_text(models::CausalLm& model, std::span<const std::int32_t> tokens,
                      const TextLossOptions& options);

// The same of texts that have nothing to do with one another, each in windows of its own, of which
// the tokens count that are learnt. UserError E0812 where there is none.
TextLoss loss_of_sequences(models::CausalLm& model, const Sequences& sequences,
                           const TextLossOptions& options);

}  // namespace aloft
