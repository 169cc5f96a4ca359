#include "data/loader.h"

#include <algorithm>

#include "base/error.h"
#include "data/prefetch.h"

namespace aloft {

struct TokenLoader::Slot {
  std::vector<std::int32_t> inputs, targets, window;
  Batch batch;
};

TokenLoaderOptions evaluation_options(std::int64_t batch, std::int64_t context) {
  TokenLoaderOptions options;
  options.batch = batch;
  options.context = context;
  options.order = {.sampling = Sampling::Windows, .shuffle = false};
  options.last = LastBatch::Keep;
  options.epochs = 1;
  return options;
}

TokenLoader::TokenLoader(TokenSource source, TokenLoaderOptions options)
    : source_(std::move(source)),
      options_(options),
      order_(source_.size(), static_cast<std::uint64_t>(std::max<std::int64_t>(0, options.context)),
             options.order),
      walk_(order_.samples_per_epoch(),
            static_cast<std::uint64_t>(std::max<std::int64_t>(0, options.batch)), options.last,
            options.epochs) {
  start();
}

TokenLoader::~TokenLoader() = default;

void TokenLoader::seek(std::uint64_t position) {
  prefetcher_->restart([&] { filling_ = position; });
  position_ = position;
}

void TokenLoader::start() {
  position_ = filling_ = options_.position;
  const double batch = static_cast<double>(options_.batch),
               context = static_cast<double>(options_.context);
  const double numbers = 2 * batch * context + context + 1;
  auto slots =
      make_slots<Slot>(options_.prefetch, numbers * sizeof(std::int32_t), [this](Slot& slot) {
        const auto size = static_cast<std::size_t>(options_.batch * options_.context);
        slot.inputs.resize(size);
        slot.targets.resize(size);
        slot.window.resize(static_cast<std::size_t>(options_.context) + 1);
      });
  prefetcher_ = std::make_unique<Prefetcher<Slot>>(std::move(slots),
                                                   [this](Slot& slot) { return fill(slot); });
}

const Batch* TokenLoader::next() {
  const Slot* slot = prefetcher_->next();
  if (!slot) return nullptr;
  position_ = slot->batch.position_after;
  return &slot->batch;
}

// Runs on the prefetch thread.
bool TokenLoader::fill(Slot& slot) {
  const std::uint64_t rows = walk_.rows_at(filling_);
  if (rows == 0) return false;
  const std::size_t context = static_cast<std::size_t>(options_.context);
  std::int64_t counted = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(options_.batch); ++row) {
    std::size_t length = 0;
    const auto inputs = std::span(slot.inputs).subspan(row * context, context);
    const auto targets = std::span(slot.targets).subspan(row * context, context);
    if (row < rows) {
      const Window window = order_.at(walk_.sample(filling_, row));
      length = window.length;
      const auto ids = std::span(slot.window).first(length + 1);
      source_.read(window.first, ids);
      std::copy_n(ids.begin(), length, inputs.begin());
      std::copy_n(ids.begin() + 1, length, targets.begin());
    }
    std::fill(inputs.begin() + static_cast<std::ptrdiff_t>(length), inputs.end(), 0);
    std::fill(targets.begin() + static_cast<std::ptrdiff_t>(length), targets.end(), kIgnoredTarget);
    counted += static_cast<std::int64_t>(length);
  }
  Batch& batch = slot.batch;
  batch.inputs = slot.inputs;
  batch.targets = slot.targets;
  batch.rows = static_cast<std::int64_t>(rows);
  batch.counted_targets = counted;
  batch.epoch = walk_.sample(filling_, 0).epoch;
  batch.position_after = filling_ += rows;
  return true;
}

}  // namespace aloft
