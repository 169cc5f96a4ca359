#include "sources/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/array_examples.h"
#include "data/idx.h"
#include "sources/example_order.h"
#include "sources/named_places.h"
#include "sources/source_kind.h"

namespace aloft {
namespace {

using nlohmann::json;

json identity_of(const ArrayData& d) {
  Hasher hasher;
  for (const auto bytes : {std::as_bytes(std::span(d.values)), std::as_bytes(std::span(d.labels)),
                           std::as_bytes(std::span(d.targets))})
    hasher.update(bytes);
  return {{"examples", d.samples()}, {"xxh3", hex16(hasher.digest())}};
}

// Both parts, of data that is to be divided.
ArraySplit divided(const ArrayData& all, double share) {
  const auto held_out =
      static_cast<std::int64_t>(std::llround(share * static_cast<double>(all.samples())));
  if (share > 0 && held_out == 0)
    throw UserError("E0512", "the share for validation holds no example")
        .saw("data.validation = " + shortest(share) + " of " + std::to_string(all.samples()) +
             " examples")
        .need("one example or more, or 0: no validation");
  return split_arrays(all, held_out, 0);  // does not change with the run's seed
}

ArrayData read_table(const Recipe& r) {
  const DataSection& d = r.data;
  const auto scale = static_cast<float>(d.scale);
  const Path path = r.folder / d.csv;
  ArrayData data =
      d.outputs > 0 ? read_table_csv(path, d.outputs, scale) : read_labelled_csv(path, scale);
  data.shape = d.shape;
  std::int64_t features = 1;
  for (const std::int64_t extent : d.shape) features *= extent;
  if (!d.shape.empty() && (d.shape.size() != 3 || features != data.features))
    throw UserError("E0727", "data.shape is not that of the table's features")
        .at(path.string())
        .saw(str(SettingValue(d.shape)) + ", and " + std::to_string(data.features) + " features")
        .need("channels, height and width, whose product is the features of a line");
  return data;
}

std::unique_ptr<RunData> open(const Recipe& r, bool) {
  const DataSection& d = r.data;
  const auto scale = static_cast<float>(d.scale);
  if (d.images.empty()) {
    ArraySplit split = divided(read_table(r), d.validation);
    return std::make_unique<ArrayRunData>(std::move(split.train), std::move(split.held_out),
                                          std::vector<Path>{r.folder / d.csv},
                                          std::move(split.rows));
  }
  std::vector<Path> files{r.folder / d.images, r.folder / d.labels};
  ArrayData train = read_idx(files[0], files[1], scale), validation;
  std::vector<std::uint64_t> rows;
  if (d.validation_images.empty()) {
    ArraySplit split = divided(train, d.validation);
    train = std::move(split.train), validation = std::move(split.held_out);
    rows = std::move(split.rows);
  } else {
    files.push_back(r.folder / d.validation_images);
    files.push_back(r.folder / d.validation_labels);
    validation = read_idx(files[2], files[3], scale);
    if (validation.shape != train.shape)
      throw DataError("E0533", "the images of validation are of another size")
          .at(files[2].string())
          .saw(str(SettingValue(validation.shape)))
          .need(str(SettingValue(train.shape)) + ", as those of training");
  }
  return std::make_unique<ArrayRunData>(std::move(train), std::move(validation), std::move(files),
                                        std::move(rows));
}

SettingValues facts_or_assumed(const Recipe& r) {
  try {
    return open(r, true)->facts(r);
  } catch (const DataError& e) {
    if (e.code() != "E0601") throw;
    const models::ModelSpec spec = model_spec(r);
    std::string assumed;
    for (const auto& [key, value] : spec.family->made_up)
      assumed += (assumed.empty() ? "" : ", ") + key + " " + str(value);
    log_warning("the recipe's data is not there, so what it says of the model is taken as {} ({})",
                assumed, e.headline());
    return spec.family->made_up;
  }
}

}  // namespace

ArrayRunData::ArrayRunData(ArrayData train, ArrayData validation, std::vector<Path> files,
                           std::vector<std::uint64_t> rows)
    : train_(std::make_shared<const ArrayData>(std::move(train))),
      files_(std::move(files)),
      rows_(std::move(rows)) {
  if (validation.samples() > 0)
    validation_ = std::make_shared<const ArrayData>(std::move(validation));
}

SettingValues ArrayRunData::facts(const Recipe&) const {
  SettingValues out{{"features", train_->features}};
  std::int64_t classes = train_->outputs;
  for (const ArrayData* d : {train_.get(), validation_.get()})
    if (d)
      for (const std::int32_t label : d->labels)
        classes = std::max(classes, static_cast<std::int64_t>(label) + 1);
  out["classes"] = classes;
  const char* const keys[] = {"channels", "height", "width"};
  for (std::size_t i = 0; i < train_->shape.size(); ++i) out[keys[i]] = train_->shape[i];
  return out;
}

std::vector<std::string> ArrayRunData::columns() const {
  return {"features", train_->outputs > 0 ? "targets" : "labels"};
}

void ArrayRunData::check_values(const Column& column) const {
  if (column.name != "targets" || !column.is_share) return;
  for (const ArrayData* d : {train_.get(), validation_.get()})
    if (d)
      for (const float target : d->targets)
        if (!(target >= 0 && target <= 1))
          throw UserError("E0727", "the data is not what the task learns from")
              .saw("a target of " + shortest(target))
              .need("targets from 0 to 1: 1 where a label holds, 0 where it does not")
              .advice("another task.kind, for numbers of any size");
}

std::unique_ptr<ExampleSource> ArrayRunData::training(const Recipe& r, std::uint64_t position,
                                                      int prefetch) const {
  ArrayLoaderOptions o = training_order(r, position);
  o.prefetch = prefetch;
  return std::make_unique<ArrayExamples>(train_, o);
}

std::string ArrayRunData::places_of_step(const Recipe& r, std::uint64_t position) const {
  std::vector<std::uint64_t> places = examples_of_step(r, count(*train_), position);
  if (!rows_.empty())
    for (std::uint64_t& place : places) place = rows_.at(place);
  return fmt::format("examples {} of {}, counted from 0", list_of_places(places),
                     files_[0].filename().string());
}

std::unique_ptr<ExampleSource> ArrayRunData::validation(const Recipe& r) const {
  return std::make_unique<ArrayExamples>(validation_, validation_order(r));
}

json ArrayRunData::record() const {
  return {{"train", identity_of(*train_)},
          {"validation", validation_ ? identity_of(*validation_) : json()},
          {"tokenizer", nullptr},
          {"files", record_of_files(files_)}};
}

json ArrayRunData::counts() const {
  return {{"train", train_->samples()}, {"validation", validation_ ? validation_->samples() : 0}};
}

std::string ArrayRunData::describe() const {
  std::string text = grouped(train_->samples()) + " training examples";
  text += validation_ ? ", " + grouped(validation_->samples()) + " for validation"
                      : ", none for validation";
  return text + fmt::format("; {} features, {}", train_->features,
                            train_->outputs > 0 ? fmt::format("{} outputs", train_->outputs)
                                                : "a label each");
}

SourceKind arrays_source() {
  SourceKind kind;
  kind.name = "arrays";
  kind.is_named = [](const Recipe& r) { return !r.data.images.empty() || !r.data.csv.empty(); };
  kind.open = open;
  kind.reopen = [](const Recipe& r, const KnownData&, bool quiet) { return open(r, quiet); };
  kind.facts = facts_or_assumed;
  return kind;
}

}  // namespace aloft
