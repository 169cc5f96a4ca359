#include "data/array_loader.h"

#include <algorithm>

#include "base/error.h"
#include "data/prefetch.h"

namespace aloft {

struct ArrayLoader::Slot {
  std::vector<float> features;
  std::vector<std::int32_t> labels;
  std::vector<float> targets;
  ArrayBatch batch;
};

namespace {

// Whether so many numbers are `samples` rows of `width`.
bool are_rows(std::size_t numbers, std::int64_t samples, std::int64_t width) {
  if (samples == 0 || width == 0) return numbers == 0;
  const auto n = static_cast<std::int64_t>(numbers);
  return n % width == 0 && n / width == samples;
}

std::shared_ptr<const ArrayData> checked(std::shared_ptr<const ArrayData> data) {
  if (data) return data;
  throw UserError("E0313", "there is no data to go through")
      .saw("a null pointer")
      .need("an ArrayData");
}

void check(const ArrayData& d) {
  const std::int64_t n = d.samples();
  const bool has_both = d.outputs > 0 && !d.labels.empty();
  if (d.features >= 0 && d.outputs >= 0 && !has_both && are_rows(d.values.size(), n, d.features) &&
      are_rows(d.targets.size(), n, d.outputs))
    return;
  throw UserError("E0313", "the numbers of a data set do not fit one another")
      .saw(std::to_string(d.values.size()) + " values, " + std::to_string(d.labels.size()) +
           " labels, " + std::to_string(d.targets.size()) + " targets")
      .need(std::to_string(d.features) + " values a sample, and either a label or " +
            std::to_string(d.outputs) + " targets each");
}

// Sample `from` of rows of `width` numbers, into row `to`.
void copy_row(const std::vector<float>& rows, std::int64_t width, std::size_t from, std::size_t to,
              std::vector<float>& into) {
  const auto n = static_cast<std::size_t>(width);
  std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(from * n), n,
              into.begin() + static_cast<std::ptrdiff_t>(to * n));
}

}  // namespace

std::uint64_t sample_at(SampleIndex at, std::uint64_t samples, const ArrayLoaderOptions& options) {
  if (!options.shuffle) return at.index;
  return Permutation(samples, mix_keys(options.seed, at.epoch))(at.index);
}

ArrayLoader::ArrayLoader(std::shared_ptr<const ArrayData> data, ArrayLoaderOptions options)
    : data_(checked(std::move(data))),
      options_(options),
      walk_(static_cast<std::uint64_t>(data_->samples()),
            static_cast<std::uint64_t>(std::max<std::int64_t>(0, options.batch)), options.last,
            options.epochs) {
  check(*data_);
  start();
}

ArrayLoader::~ArrayLoader() = default;

void ArrayLoader::seek(std::uint64_t position) {
  prefetcher_->restart([&] { filling_ = position; });
  position_ = position;
}

void ArrayLoader::start() {
  position_ = filling_ = options_.position;
  const double numbers =
      static_cast<double>(options_.batch) *
      static_cast<double>(data_->features + std::max<std::int64_t>(data_->outputs, 1));
  auto slots = make_slots<Slot>(options_.prefetch, numbers * sizeof(float), [this](Slot& slot) {
    const auto batch = static_cast<std::size_t>(options_.batch);
    const auto outputs = static_cast<std::size_t>(data_->outputs);
    slot.features.resize(batch * static_cast<std::size_t>(data_->features));
    slot.labels.resize(outputs > 0 ? 0 : batch);
    slot.targets.resize(batch * outputs);
  });
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
  const auto samples = static_cast<std::uint64_t>(data_->samples());
  for (std::size_t row = 0; row < rows; ++row) {
    const auto sample =
        static_cast<std::size_t>(sample_at(walk_.sample(filling_, row), samples, options_));
    copy_row(data_->values, data_->features, sample, row, slot.features);
    copy_row(data_->targets, data_->outputs, sample, row, slot.targets);
    if (!slot.labels.empty()) slot.labels[row] = data_->labels[sample];
  }
  const auto pad = [rows](auto& list, std::int64_t width, auto value) {
    const auto filled = static_cast<std::ptrdiff_t>(rows) * width;
    if (!list.empty()) std::fill(list.begin() + filled, list.end(), value);
  };
  pad(slot.features, data_->features, 0.0f);
  pad(slot.targets, data_->outputs, 0.0f);
  pad(slot.labels, 1, kIgnoredLabel);
  slot.batch = {slot.features,
                slot.labels,
                slot.targets,
                static_cast<std::int64_t>(rows),
                walk_.sample(filling_, 0).epoch,
                filling_ + rows};
  filling_ += rows;
  return true;
}

}  // namespace aloft
