// Batches of arrays as tensors:  for (auto [x, y] : loader) step(x, y);  y holds the labels, i32
// [rows], or where the data has targets, f32 [rows, outputs].
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/array_loader.h"
#include "frontend/eager.h"

namespace aloft {

// Hands out the samples of an ArrayData as tensors, epoch by epoch, in an order that is a function
// of options and position alone. What data and options must satisfy: data/array_loader.h.
class Loader {
 public:
  // `sample` is the shape of one x, such as {1, 8, 8}; empty: a plain vector. The last batch of an
  // epoch has fewer rows where the batch does not divide the samples. UserError E0313 where shape,
  // features, labels or targets do not fit one another, E0530 where there is no batch at all.
  Loader(ArrayData data, ArrayLoaderOptions options, Shape sample = {})
      : sample_(std::move(sample)) {
    auto shared = std::make_shared<const ArrayData>(std::move(data));
    if (sample_.rank() == 0) sample_ = Shape{shared->features};
    if (sample_.max_numel() != shared->features)
      throw UserError("E0313", "the shape of a sample does not fit its numbers")
          .saw(sample_.str() + " for " + std::to_string(shared->features) + " numbers")
          .need("extents whose product is the numbers of a sample");
    outputs_ = shared->outputs;
    // A batch that is kept has at most all samples: no memory for more.
    if (options.last == LastBatch::Keep) options.batch = std::min(options.batch, shared->samples());
    source_ = std::make_unique<ArrayLoader>(std::move(shared), options);
  }

  // Samples handed out so far, the batch in hand included: what a checkpoint keeps.
  std::uint64_t position() const { return source_->position(); }
  // Goes on from a position, of this data with these options: the batches are those that would have
  // followed. Not inside a loop over it.
  void seek(std::uint64_t position) { source_->seek(position); }
  // Epochs handed out in full.
  std::uint64_t epoch() const { return source_->epoch(); }

  // One epoch, or the rest of one that a position or an unfinished loop lies in; the next loop goes
  // on with the next one.
  struct End {};
  class Iterator {
   public:
    explicit Iterator(Loader& loader) : loader_(loader), left_(loader.source_->batches_left()) {
      fetch();
    }
    const std::pair<Tensor, Tensor>& operator*() const { return value_; }
    Iterator& operator++() {
      --left_;
      fetch();
      return *this;
    }
    bool operator!=(End) const { return left_ > 0; }

   private:
    void fetch() {
      if (left_ == 0) return;
      if (const ArrayBatch* b = loader_.source_->next())
        value_ = loader_.tensors(*b);
      else
        left_ = 0;
    }
    Loader& loader_;
    std::uint64_t left_;
    std::pair<Tensor, Tensor> value_;
  };
  // For a range-based for: each element is a pair {x, y}.
  Iterator begin() { return Iterator(*this); }
  End end() const { return {}; }

 private:
  std::pair<Tensor, Tensor> tensors(const ArrayBatch& b) const {
    std::vector<Dim> dims{b.rows};
    dims.insert(dims.end(), sample_.begin(), sample_.end());
    const std::int64_t numbers = b.rows * sample_.max_numel();
    return {from_floats({b.features.begin(), b.features.begin() + numbers}, Shape(dims)),
            outputs_ > 0 ? from_floats({b.targets.begin(), b.targets.begin() + b.rows * outputs_},
                                       {b.rows, outputs_})
                         : from_ints({b.labels.begin(), b.labels.begin() + b.rows}, {b.rows})};
  }

  Shape sample_;
  std::int64_t outputs_ = 0;
  std::unique_ptr<ArrayLoader> source_;
};

}  // namespace aloft
