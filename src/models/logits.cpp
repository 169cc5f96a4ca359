#include "models/logits.h"

#include "graph/refuse.h"
#include "models/text_classifier.h"

namespace aloft::models {
namespace {

Tensor checked(Tensor logits, const CausalLm& model, const Tensor& tokens) {
  const Shape need{tokens.dim(0), tokens.dim(1), model.vocab()};
  if (logits.shape() != need)
    refuse(UserError("E0215", "a language model's logits are not of its vocabulary")
               .saw(logits.type().str() + ", of tokens " + tokens.type().str())
               .need(need.str() + ", as its vocab() says"),
           tokens);
  return logits;
}

}  // namespace

Tensor logits_of(const CausalLm& model, const Tensor& tokens) {
  return checked(model(tokens), model, tokens);
}

Tensor decoded_logits(const CausalLm& model, const Tensor& tokens, const DecodeCache& cache) {
  return checked(model.decode(tokens, cache), model, tokens);
}

Tensor outputs_of(const Classifier& model, std::span<const Tensor> inputs) {
  const Tensor& features = inputs.front();
  const auto* of_texts = model.of_texts();
  if (inputs.size() == 3 && !of_texts)
    throw UserError("E0718", "the model is not of the kind that is asked for")
        .saw("a classifier of features")
        .need("one of texts");
  Tensor outputs =
      inputs.size() == 3 ? of_texts->classify(inputs[0], inputs[1], inputs[2]) : model(features);
  const Shape need{features.dim(0), model.classes()};
  if (outputs.shape() != need)
    refuse(UserError("E0215", "a classifier's outputs are not of its classes")
               .saw(outputs.type().str() + ", of features " + features.type().str())
               .need(need.str() + ", as its classes() says"),
           features);
  return outputs;
}

}  // namespace aloft::models
