// Logits of a language model, held to its vocabulary: targets and drawn tokens are counted by it.
#pragma once

#include "models/model.h"

namespace aloft::models {

// What the model gives for tokens [B, T]. UserError E0215 where that is not [B, T, vocab()].
Tensor logits_of(const CausalLm& model, const Tensor& tokens);
// Likewise of decode(), for the next tokens of the sequences in the cache.
Tensor decoded_logits(const CausalLm& model, const Tensor& tokens, const DecodeCache& cache);

}  // namespace aloft::models
