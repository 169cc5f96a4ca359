#include "data/array_loader.h"

#include <algorithm>

#include "base/error.h"

namespace aloft {

struct ArrayLoader::Slot {
  std::vector<float> features;
  std::vector<std::int32_t> labels;
  ArrayBatch batch;
};

ArrayLoader::ArrayLoader(std::shared_ptr<const ArrayData> data, ArrayLoaderOptions options)
    : data_(std::move(data)),
      options_(options),
      walk_(data_->labels.size(),
            static_cast<std::uint64_t>(std::max<std::int64_t>(0, options.batch)), options.last,
            options.epochs) {
  ensure(data_->values.size() == data_->labels.size() * static_cast<std::size_t>(data_->features),
         "every sample has all its features");
  seek(options.position);
}

ArrayLoader::~ArrayLoader() = default;

void ArrayLoader::seek(std::uint64_t position) {
  prefetcher_.reset();  // joins the thread before its position is set
  position_ = filling_ = position;
  std::vector<Slot> slots(static_cast<std::size_t>(std::max(1, options_.prefetch)) + 1);
  for (Slot& slot : slots) {
    slot.features.resize(static_cast<std::size_t>(options_.batch * data_->features));
    slot.labels.resize(static_cast<std::size_t>(options_.batch));
  }
  prefetcher_ = std::make_unique<Prefetcher<Slot>>(std::move(slots),
                                                   [this](Slot& slot) { return fill(slot); });
}

const ArrayBatch* ArrayLoader::next() {
  const Slot* slot = prefetcher_->next();
  if (!slot) return nullptr;
  position_ = slot->batch.position_after;
  return &slot->batch;
}

// Runs on the prefetch thread.
bool ArrayLoader::fill(Slot& slot) {
  const std::size_t rows = static_cast<std::size_t>(walk_.rows_at(filling_));
  if (rows == 0) return false;
  const std::size_t features = static_cast<std::size_t>(data_->features);
  for (std::size_t row = 0; row < rows; ++row) {
    const SampleIndex at = walk_.sample(filling_, row);
    const Permutation shuffle(data_->labels.size(), mix_keys(options_.seed, at.epoch));
    const std::size_t sample =
        static_cast<std::size_t>(options_.shuffle ? shuffle(at.index) : at.index);
    std::copy_n(data_->values.begin() + static_cast<std::ptrdiff_t>(sample * features), features,
                slot.features.begin() + static_cast<std::ptrdiff_t>(row * features));
    slot.labels[row] = data_->labels[sample];
  }
  std::fill(slot.features.begin() + static_cast<std::ptrdiff_t>(rows * features),
            slot.features.end(), 0.0f);
  std::fill(slot.labels.begin() + static_cast<std::ptrdiff_t>(rows), slot.labels.end(),
            kIgnoredLabel);
  slot.batch = {slot.features, slot.labels, static_cast<std::int64_t>(rows),
                walk_.sample(filling_, 0).epoch, filling_ + rows};
  filling_ += rows;
  return true;
}

}  // namespace aloft
