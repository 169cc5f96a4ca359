// What a model is to whoever trains it, judges it or writes text with it: interfaces that know no
// family. A family (family.h) makes one of them from its settings.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/attention.h"
#include "nn/layer.h"

namespace aloft::models {

// What decoding keeps between calls: keys and values of every layer, and how many positions are
// filled. Variables like any other, so one compiled program serves every position.
struct DecodeCache {
  std::vector<nn::KeyValueCache> layers;  // of each block
  VariablePtr position;                   // i32[]: positions filled
  std::int64_t longest = 0;               // positions that there is room for
  VariablePtr starts = {};                // i32[batch]: of each sequence; null: none is padded
  VariablePtr lengths = {};               // i32[batch]: of each sequence; null: as the call is
  // Sequences of more tokens turn by other angles: those before are read anew then; 0: none do.
  std::int64_t first_length = 0;

  void clear();  // back to an empty sequence
  // Back to the first `count` positions, at most those that are filled: what stands behind them is
  // written over before anybody looks at it.
  void rewind(std::int64_t count);
  // Lets each of `batch` sequences begin at a position of its own, which `starts` then says: what
  // stands before is padding. Before programs are made with the cache.
  void allow_padding(std::int64_t batch);
  // Lets `lengths` say of how many tokens each of `batch` sequences is, those of the next call
  // included, where angles depend on it. Before programs are made with the cache.
  void allow_lengths(std::int64_t batch);
};

// A language model: of each token's successor it knows what came before alone.
class CausalLm : public nn::Layer {
 public:
  // Ids that it knows, and the longest sequence that it reads.
  virtual std::int64_t vocab() const = 0;
  virtual std::int64_t context() const = 0;

  // tokens, integers [B, T] with T <= context() -> logits [B, T, vocab()]. UserError E0213 for any
  // other shape. Logits of another width are refused where they are used: E0215.
  virtual Tensor operator()(Operand tokens) const = 0;
  // Mean cross-entropy against targets [B, T]; -100 is ignored. The head feeds the loss directly,
  // so that a pass can fuse the two.
  virtual Tensor loss(Operand tokens, Operand targets) const = 0;

  // A cache for `batch` sequences of up to `longest` positions (at most the context), kept in
  // `dtype`: the type that attention computes in. UserError E0210 unless both are positive.
  virtual DecodeCache make_cache(std::int64_t batch, std::int64_t longest, DType dtype) const = 0;
  // The next n tokens [B, n] of the sequences in the cache: appends them. `decode` returns the
  // logits [B, n, vocab()]; `prefill` only fills the cache. UserError E0213 unless n is 1 to
  // `longest`.
  virtual Tensor decode(Operand tokens, const DecodeCache& cache) const = 0;
  virtual void prefill(Operand tokens, const DecodeCache& cache) const = 0;
};

class TextClassifier;

// A model that says which of several classes an example, such as an image, is of.
class Classifier : public nn::Layer {
 public:
  virtual std::int64_t classes() const = 0;        // how many it tells apart
  virtual Tensor operator()(Operand x) const = 0;  // [B, ...] -> logits [B, classes()]
  // This, where it reads texts (text_classifier.h); null where it reads features.
  virtual const TextClassifier* of_texts() const { return nullptr; }
};

}  // namespace aloft::models
