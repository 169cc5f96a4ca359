// The order of samples, as pure functions: no state, no memory that grows with the data. Any
// position can be asked for at once, so a resumed run needs its position alone.
//   Permutation  a keyed shuffle of 0..n-1 (Feistel network with cycle walking), O(1) memory
//   BatchWalk    position -> the (epoch, index) of every row of a batch
//   WindowOrder  (epoch, index) -> where in the token sequence a sample lies
#pragma once

#include <cstdint>

namespace aloft {

// Three 64-bit words to one, well mixed; the source of all randomness in this folder.
std::uint64_t mix_keys(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0);

// Uniform in [0, n), from 64 random bits (n > 0). The bias is below n / 2^64.
std::uint64_t scale_down(std::uint64_t random_bits, std::uint64_t n);

// A shuffle of 0 .. n-1, a function of the key.
class Permutation {
 public:
  // A bijection of [0, n); UserError E0532 for n = 0, as below from n on.
  Permutation(std::uint64_t n, std::uint64_t key);
  std::uint64_t operator()(std::uint64_t i) const;  // where i goes; i < n

 private:
  static constexpr int kRounds = 6;
  std::uint64_t n_, mask_;
  int half_bits_;
  std::uint64_t keys_[kRounds];
};

// What becomes of the samples at an epoch's end that do not fill a batch.
enum class LastBatch {
  Wrap,  // the batch is filled up with samples of the next epoch: every batch is full
  Keep,  // the batch has fewer rows
  Drop,  // they are left out of this epoch
};

// A sample of one of the epochs.
struct SampleIndex {
  std::uint64_t epoch = 0, index = 0;  // index < samples per epoch
  friend bool operator==(const SampleIndex&, const SampleIndex&) = default;
};

// Which samples the batch at a position has. Positions count samples handed out since the run
// began; 0 is the start.
class BatchWalk {
 public:
  // `batch`: samples a batch. UserError E0530 where Drop would leave nothing (fewer samples than a
  // batch has rows), or where there is no sample at all. epochs == 0: without end.
  BatchWalk(std::uint64_t samples_per_epoch, std::uint64_t batch, LastBatch last,
            std::uint64_t epochs = 0);

  // Rows of the batch that begins at a position; 0 at the end.
  std::uint64_t rows_at(std::uint64_t position) const;
  // The sample in one of those rows.
  SampleIndex sample(std::uint64_t position, std::uint64_t row) const;
  std::uint64_t batches_per_epoch() const;  // Wrap: rounded up
  // Whole rounds of batches_per_epoch() handed out up to a position, and batches from it to the end
  // of the round that it lies in: all of them at its beginning.
  std::uint64_t rounds_at(std::uint64_t position) const;
  std::uint64_t batches_left(std::uint64_t position) const;

 private:
  std::uint64_t used_;  // samples of an epoch that are handed out
  std::uint64_t batch_;
  LastBatch last_;
  std::uint64_t end_;  // one past the last position
};

// How samples are taken from a sequence of tokens.
enum class Sampling {
  Windows,  // cut into windows of `context` targets, each seen once an epoch
  Random,   // an independent, uniformly random offset each: nanoGPT's get_batch
};

// In which order a WindowOrder goes through the tokens.
struct OrderOptions {
  Sampling sampling = Sampling::Windows;  // cut into windows, or drawn anywhere
  bool shuffle = true;                    // Windows only; off for evaluation
  std::uint64_t seed = 0;                 // of shuffling and of drawing
};

// `length` inputs begin at `first`; their targets are the same one token later.
struct Window {
  std::uint64_t first = 0, length = 0;  // tokens
  friend bool operator==(const Window&, const Window&) = default;
};

// Where the samples of an epoch lie in a sequence of tokens. Shuffled windows all have full length;
// the (tokens - 1) % context tokens left over are shared out between the start and the end,
// differently in each epoch, so that over the epochs every token is trained on. Unshuffled windows
// cover everything in order, and the last one may be shorter.
class WindowOrder {
 public:
  // `tokens`: of the sequence; `context`: of a sample. DataError E0531 where the tokens do not fill
  // one window.
  WindowOrder(std::uint64_t tokens, std::uint64_t context, OrderOptions options);

  // The windows of an epoch; with Random as many draws.
  std::uint64_t samples_per_epoch() const { return samples_; }
  // Where a sample lies; UserError E0532 unless its index is below samples_per_epoch().
  Window at(SampleIndex sample) const;

 private:
  std::uint64_t tokens_, context_, samples_;
  OrderOptions options_;
};

}  // namespace aloft
