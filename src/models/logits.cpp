#include "models/logits.h"

#include "base/error.h"

namespace aloft::models {
namespace {

Tensor checked(Tensor logits, const CausalLm& model, const Tensor& tokens) {
  const Shape need{tokens.dim(0), tokens.dim(1), model.vocab()};
  if (logits.shape() != need)
    throw UserError("E0215", "a language model's logits are not of its vocabulary")
        .saw(logits.type().str() + ", of tokens " + tokens.type().str())
        .need(need.str() + ", as its vocab() says");
  return logits;
}

}  // namespace

Tensor logits_of(const CausalLm& model, const Tensor& tokens) {
  return checked(model(tokens), model, tokens);
}

Tensor decoded_logits(const CausalLm& model, const Tensor& tokens, const DecodeCache& cache) {
  return checked(model.decode(tokens, cache), model, tokens);
}

}  // namespace aloft::models
