// The sample of text that a run writes now and then, to show what its model has learnt.
#pragma once

#include <cstdint>
#include <string>

#include "data/tokenizer.h"
#include "models/model.h"

namespace aloft {

// `tokens` tokens behind a new line, drawn at temperature 0.8 from the 40 likeliest, always the
// same for the same weights and seed. Leaves the model in training mode. DivergedError E0813 where
// its logits are not finite; Interrupted (interrupt.h) where a signal asks for the end meanwhile.
std::string draw_run_sample(models::CausalLm& model, const Tokenizer& tokenizer,
                            std::int64_t tokens, std::uint64_t seed);

}  // namespace aloft
