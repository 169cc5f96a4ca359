// Batches for the training loop, and the map of this folder:
//
//   tokenizer.h     Tokenizer: encode, decode, save; load_tokenizer(path)
//   build.h         make_tokenizer(spec, corpus): loaded, or made of text
//   corpus.h        files, folders and globs -> Corpus; split into training and validation parts
//   pack.h          corpus + tokenizer -> cached shards; open_dataset(...) -> two TokenSources
//   shard.h         the shard file; token_source.h: ids wherever they lie
//   order.h         position -> sample: Permutation, BatchWalk, WindowOrder; pure functions
//   tokenizers/     the kinds, a pair of files each (tokenizer_kind.h), and load_tokenizer
//   loader.h        TokenLoader: next() -> Batch{inputs, targets [B, T]}, prefetched
//   array_loader.h  ArrayLoader: next() -> ArrayBatch{features, labels or targets}, from CSV too
//
//   TokenLoader loader(source, {.batch = 8, .context = 256, .order = {.seed = 1}});
//   while (const Batch* b = loader.next()) step(b->inputs, b->targets);   // resume: seek(position)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/order.h"
#include "data/token_source.h"

namespace aloft {

template <class Slot>
class Prefetcher;

// Targets that the loss leaves out: the padding of short windows and partial batches.
inline constexpr std::int32_t kIgnoredTarget = -100;

// One batch, valid until the loader's next call. Both spans hold batch x context ids, row by row;
// padding is input 0 with target kIgnoredTarget.
struct Batch {
  std::span<const std::int32_t> inputs, targets;  // of each position, and what follows it
  std::int64_t rows = 0;                          // actual batch size; rows beyond it are padding
  std::int64_t counted_targets = 0;               // targets that are not ignored
  std::uint64_t epoch = 0;                        // of the first row
  std::uint64_t position_after = 0;               // seek() here continues after this batch
};

// How a source is cut into batches.
struct TokenLoaderOptions {
  std::int64_t batch = 1, context = 1;  // windows a batch, ids a window
  OrderOptions order;                   // shuffled or not, from which seed
  LastBatch last = LastBatch::Wrap;     // what becomes of an epoch's rest
  std::uint64_t epochs = 0;             // 0: without end
  std::uint64_t position = 0;  // samples already handed out; a resumed run's position_after
  int prefetch = 3;            // batches made ahead; cut to 1 .. 256
};

// What evaluation wants: everything once, in order, the last window and batch as short as they are.
TokenLoaderOptions evaluation_options(std::int64_t batch, std::int64_t context);

// The sequence of batches is a function of the source, the options and the position alone.
class TokenLoader {
 public:
  // UserError E0530, DataError E0531 (order.h). EnvironmentError E0401 where the batches made ahead
  // need more memory than there is.
  TokenLoader(TokenSource source, TokenLoaderOptions options);
  ~TokenLoader();

  // nullptr after the last epoch. DataError E0522 where a token lies outside the vocabulary.
  const Batch* next();
  // Where the next batch begins: what a checkpoint records.
  std::uint64_t position() const { return position_; }
  void seek(std::uint64_t position);

  // Windows, and batches, that an epoch has.
  std::uint64_t samples_per_epoch() const { return order_.samples_per_epoch(); }
  std::uint64_t batches_per_epoch() const { return walk_.batches_per_epoch(); }

 private:
  struct Slot;
  void start();
  bool fill(Slot& slot);

  TokenSource source_;
  TokenLoaderOptions options_;
  WindowOrder order_;
  BatchWalk walk_;
  std::uint64_t position_;     // of the consumer
  std::uint64_t filling_ = 0;  // of the prefetch thread
  std::unique_ptr<Prefetcher<Slot>> prefetcher_;
};

}  // namespace aloft
