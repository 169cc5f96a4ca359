// Batches of plain vectors with a label each, or with numbers to predict: images, tables. All of it
// lies in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/file.h"
#include "data/order.h"

namespace aloft {

template <class Slot>
class Prefetcher;

// Samples in memory, each with a label or with numbers to predict.
struct ArrayData {
  std::int64_t features = 0;         // numbers a sample
  std::vector<float> values;         // [samples, features], row by row
  std::vector<std::int32_t> labels;  // [samples]; empty where there are targets
  // Instead of labels, where numbers are to be predicted: so many a sample, row by row.
  std::int64_t outputs = 0;
  std::vector<float> targets;  // [samples, outputs]
  // Of a sample whose features are an image: channels, height, width; empty where nobody says.
  std::vector<std::int64_t> shape = {};

  // How many there are, by the targets or the labels.
  std::int64_t samples() const {
    return static_cast<std::int64_t>(outputs > 0 ? targets.size() / outputs : labels.size());
  }
};

// A text file of one sample a line: numbers separated by commas, the last one the label, a whole
// number >= 0; features are multiplied by `scale`. Empty lines are left out, a first line of words
// is taken as a heading. DataError E0515 names the line.
ArrayData read_labelled_csv(const Path& path, float scale = 1);
// The same with the last `outputs` numbers of a line to be predicted, as they are. UserError E0512
// unless there is one or more.
ArrayData read_table_csv(const Path& path, std::int64_t outputs, float scale = 1);

// Data to train on, and the rest to judge by.
struct ArraySplit {
  ArrayData train, held_out;        // disjoint, together all samples, in their order
  std::vector<std::uint64_t> rows;  // which of all samples each of train is
};
// `held_out` samples chosen by the seed. UserError E0512 unless 0 <= held_out < samples.
ArraySplit split_arrays(const ArrayData& data, std::int64_t held_out, std::uint64_t seed);

// One batch, valid until the loader's next call. Rows from `rows` on are padding: zeros, with label
// kIgnoredLabel or targets of zero.
struct ArrayBatch {
  std::span<const float> features;       // [batch, features]
  std::span<const std::int32_t> labels;  // [batch]; empty where there are targets
  std::span<const float> targets;        // [batch, outputs]
  std::int64_t rows = 0;                 // samples in it, at most the batch
  std::uint64_t epoch = 0;               // of its first sample, from 0
  std::uint64_t position_after = 0;      // samples handed out, this batch included
};

// The label of padding: cross_entropy's ignore_index, so that it counts for nothing.
inline constexpr std::int32_t kIgnoredLabel = -100;

// How an ArrayLoader, or a Loader, goes through the data.
struct ArrayLoaderOptions {
  std::int64_t batch = 1;            // samples a batch
  bool shuffle = true;               // anew in each epoch
  std::uint64_t seed = 0;            // of the shuffling
  LastBatch last = LastBatch::Keep;  // what becomes of an epoch's last, partial batch
  std::uint64_t epochs = 0;          // 0: without end
  std::uint64_t position = 0;        // samples already handed out
  int prefetch = 2;                  // batches that a thread makes ready ahead; cut to 1 .. 256
};

// Inside: which of so many samples one of an epoch is, in the order of these options.
std::uint64_t sample_at(SampleIndex at, std::uint64_t samples, const ArrayLoaderOptions& options);

// Hands out batches of host memory; Loader (aloft/loader.h) makes tensors of them. The sequence of
// batches is a function of the data, the options and the position alone.
class ArrayLoader {
 public:
  // Begins at options.position. UserError E0530 (order.h), E0313: the numbers of features and of
  // labels or targets do not agree, or there is no data. EnvironmentError E0401 where the batches
  // made ahead need more memory than there is.
  ArrayLoader(std::shared_ptr<const ArrayData> data, ArrayLoaderOptions options);
  ~ArrayLoader();

  const ArrayBatch* next();  // nullptr after the last epoch
  // Samples handed out so far.
  std::uint64_t position() const { return position_; }
  // Goes on from a position: the batches are those that would have followed it.
  void seek(std::uint64_t position);
  // The partial last one counts, unless it is dropped.
  std::uint64_t batches_per_epoch() const { return walk_.batches_per_epoch(); }
  std::uint64_t epoch() const { return walk_.rounds_at(position_); }  // epochs handed out in full
  std::uint64_t batches_left() const { return walk_.batches_left(position_); }  // in this epoch

 private:
  struct Slot;
  void start();
  bool fill(Slot& slot);

  std::shared_ptr<const ArrayData> data_;
  ArrayLoaderOptions options_;
  BatchWalk walk_;
  std::uint64_t position_ = 0, filling_ = 0;  // of the consumer and of the prefetch thread
  std::unique_ptr<Prefetcher<Slot>> prefetcher_;
};

}  // namespace aloft
