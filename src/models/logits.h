// What models give, held to what they say of themselves: targets, labels and drawn tokens are
// counted by it.
#pragma once

#include "models/model.h"

namespace aloft::models {

// What a language model gives for tokens [B, T]. UserError E0215 where that is not
// [B, T, vocab()].
Tensor logits_of(const CausalLm& model, const Tensor& tokens);
// Likewise of decode(), for the next tokens of the sequences in the cache.
Tensor decoded_logits(const CausalLm& model, const Tensor& tokens, const DecodeCache& cache);
// What a classifier gives for features [B, ...]. UserError E0215 where that is not [B, classes()].
Tensor outputs_of(const Classifier& model, const Tensor& features);

}  // namespace aloft::models
