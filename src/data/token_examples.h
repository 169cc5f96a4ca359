// Windows of tokens as examples: inputs and targets, i32 [batch, context] each.
#pragma once

#include "data/example_source.h"
#include "data/loader.h"

namespace aloft {

ExampleBatch example_batch(const Batch& batch);

class TokenExamples : public ExampleSource {
 public:
  // The errors of TokenLoader.
  TokenExamples(TokenSource source, TokenLoaderOptions options)
      : loader_(std::move(source), options) {}
  const ExampleBatch* next() override;
  std::uint64_t position() const override { return loader_.position(); }
  std::uint64_t samples_per_epoch() const override { return loader_.samples_per_epoch(); }

 private:
  TokenLoader loader_;
  ExampleBatch batch_;
};

}  // namespace aloft
