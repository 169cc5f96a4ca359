// The sample of text that a run writes now and then, to show what its model has learnt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/sample_prompt.h"
#include "data/tokenizer.h"
#include "models/model.h"

namespace aloft {

// `tokens` tokens behind a new line, or the prompt with an answer of at most so many, drawn at
// temperature 0.8 from the 40 likeliest, always the same for the same weights and seed. Leaves the
// model in training mode. DivergedError E0813 where its logits are not finite; Interrupted
// (interrupt.h) where a signal asks for the end meanwhile.
std::string draw_run_sample(models::CausalLm& model, const Tokenizer& tokenizer,
                            const std::optional<SamplePrompt>& prompt, std::int64_t tokens,
                            std::uint64_t seed);

}  // namespace aloft
