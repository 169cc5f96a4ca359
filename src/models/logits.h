// What models give, held to what they say of themselves: targets, labels and drawn tokens are
// counted by it.
#pragma once

#include <span>

#include "models/model.h"

namespace aloft::models {

// What a language model gives for tokens [B, T]. UserError E0215 where that is not
// [B, T, vocab()].
Tensor logits_of(const CausalLm& model, const Tensor& tokens);
// Likewise of decode(), for the next tokens of the sequences in the cache.
Tensor decoded_logits(const CausalLm& model, const Tensor& tokens, const DecodeCache& cache);
// What a classifier gives for features [B, ...], or one of texts for tokens, types and lengths
// (text_classifier.h). UserError E0215 where that is not [B, classes()], E0718 for three inputs of
// what reads no texts.
Tensor outputs_of(const Classifier& model, std::span<const Tensor> inputs);
inline Tensor outputs_of(const Classifier& model, const Tensor& features) {
  return outputs_of(model, std::span(&features, 1));
}

}  // namespace aloft::models
