#include "sources/labelled.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/held_out.h"
#include "recipe/open_data.h"
#include "recipe/run_length.h"
#include "sources/example_order.h"
#include "sources/named_places.h"
#include "sources/run_tokenizer.h"
#include "sources/source_kind.h"

namespace aloft {
namespace {

using nlohmann::json;

json identity_of(const LabelledTexts& t) {
  Hasher hasher;
  for (const auto bytes : {std::as_bytes(std::span(t.tokens)), std::as_bytes(std::span(t.types)),
                           std::as_bytes(std::span(t.starts)), std::as_bytes(std::span(t.labels))})
    hasher.update(bytes);
  return {{"examples", t.examples()}, {"xxh3", hex16(hasher.digest())}};
}

// Which examples are for validation: chosen by nothing that changes with the run's seed.
struct Rows {
  std::vector<std::uint64_t> train, validation;
};
Rows divided(std::uint64_t examples, double share, const Path& file) {
  auto held_out = static_cast<std::uint64_t>(std::llround(share * static_cast<double>(examples)));
  if (share > 0) held_out = std::max<std::uint64_t>(held_out, 1);
  if (share > 0 && held_out >= examples)
    throw UserError("E0512", "the share for validation leaves a part without examples")
        .at(file.string())
        .saw("data.validation = " + shortest(share) + " of " + std::to_string(examples) +
             (examples == 1 ? " example" : " examples"))
        .need("one example or more in both parts, or 0: no validation")
        .advice(
            "more lines, --set data.validation=0, or data.validation_labelled, a file of "
            "others");
  const std::vector<bool> is_held = held_out_of(examples, held_out, 0);
  Rows rows;
  for (std::uint64_t i = 0; i < examples; ++i)
    (is_held[i] ? rows.validation : rows.train).push_back(i);
  return rows;
}

std::shared_ptr<const Tokenizer> tokenizer_of(const Recipe& r) {
  need_tokenizer_of_init(r);
  if (r.data.tokenizer.path.empty())
    throw UserError("E0717", "the recipe names no tokenizer for its texts")
        .need("data.tokenizer.path, " + tokenizer_forms())
        .advice("--init FOLDER, of a folder of Hugging Face with its tokenizer");
  return load_tokenizer(r.folder / r.data.tokenizer.path);
}

void say_cut(const LabelledTexts& texts, std::int64_t length, const Path& file) {
  if (texts.cut > 0)
    log_warning("{}: {} of {} texts are longer than {} tokens and are cut", file.string(),
                grouped(texts.cut), grouped(static_cast<std::int64_t>(texts.examples())), length);
}

std::unique_ptr<RunData> open_with(const Recipe& r, std::shared_ptr<const Tokenizer> tokenizer,
                                   bool quiet) {
  const DataSection& d = r.data;
  if (d.labelled.empty())
    throw UserError("E0717", "the recipe names no text")
        .need("data.labelled, a file of a JSON object a line: \"text\" and \"label\"")
        .advice("--set data.labelled=texts.jsonl");
  const std::int64_t length = tokens_an_example(r);
  std::vector<Path> files{r.folder / d.labelled};
  const auto read = [&](const Path& path) {
    LabelledTexts texts = read_labelled_texts(path, *tokenizer, length);
    if (!quiet) say_cut(texts, length, path);
    return texts;
  };
  LabelledTexts train = read(files[0]), validation;
  std::vector<std::uint64_t> rows;
  if (d.validation_labelled.empty()) {
    Rows parts = divided(train.examples(), d.validation, files[0]);
    validation = texts_of_rows(train, parts.validation);
    train = texts_of_rows(train, parts.train);
    rows = std::move(parts.train);
  } else {
    files.push_back(r.folder / d.validation_labelled);
    validation = read(files[1]);
  }
  return std::make_unique<LabelledRunData>(std::move(tokenizer), length, std::move(train),
                                           std::move(validation), std::move(files),
                                           std::move(rows));
}

std::unique_ptr<RunData> open(const Recipe& r, bool quiet) {
  return open_with(r, tokenizer_of(r), quiet);
}

// With the run's tokenizer, which lies beside it; one that the recipe names must be the same.
std::unique_ptr<RunData> reopen(const Recipe& r, const KnownData& known, bool quiet) {
  const Path own = own_tokenizer(known.run);
  if (!path_exists(own / kTokenizerFile)) return open(r, quiet);
  if (!r.data.tokenizer.path.empty()) has_given_tokenizer(r, known.run);
  return open_with(r, load_tokenizer(own), quiet);
}

SettingValues facts_or_assumed(const Recipe& r) {
  const models::ModelSpec spec = model_spec(r);
  const std::int64_t length = tokens_an_example(r);
  try {
    if (!r.data.labelled.empty()) return open(r, true)->facts(r);
  } catch (const DataError& e) {
    if (e.code() != "E0601" && e.code() != "E0503") throw;
    log_warning("the recipe's texts cannot be read: {}", e.headline());
  }
  SettingValues facts{{"length", length}};
  std::string assumed;
  for (const auto& [key, value] : spec.family->made_up) {
    if (spec.whole(key) > 0) continue;
    facts[key] = value;
    assumed += (assumed.empty() ? "" : ", ") + key + " " + str(value);
  }
  if (!assumed.empty())
    log_warning("without texts and labels what they say of the model is taken as {}", assumed);
  return facts;
}

}  // namespace

LabelledRunData::LabelledRunData(std::shared_ptr<const Tokenizer> tokenizer, std::int64_t length,
                                 LabelledTexts train, LabelledTexts validation,
                                 std::vector<Path> files, std::vector<std::uint64_t> rows)
    : tokenizer_(std::move(tokenizer)),
      length_(length),
      train_(std::make_shared<const LabelledTexts>(std::move(train))),
      files_(std::move(files)),
      rows_(std::move(rows)) {
  if (validation.examples() > 0)
    validation_ = std::make_shared<const LabelledTexts>(std::move(validation));
}

SettingValues LabelledRunData::facts(const Recipe&) const {
  std::int64_t classes = 2;  // one alone is nothing to tell apart
  for (const LabelledTexts* t : {train_.get(), validation_.get()})
    if (t)
      for (const std::int32_t label : t->labels)
        classes = std::max(classes, static_cast<std::int64_t>(label) + 1);
  return {
      {"vocab", std::int64_t{tokenizer_->vocab_size()}}, {"classes", classes}, {"length", length_}};
}

void LabelledRunData::check_values(const Column& column) const {
  if (column.name != "types") return;
  for (const LabelledTexts* t : {train_.get(), validation_.get()})
    if (t && !t->types.empty() && *std::ranges::max_element(t->types) >= column.below)
      throw UserError("E0727", "the data is not what the task learns from")
          .saw(fmt::format("tokens of the type {}", *std::ranges::max_element(t->types)))
          .need(fmt::format("types below {}, model.token_types", column.below))
          .advice("the tokenizer that belongs to the model");
}

std::unique_ptr<ExampleSource> LabelledRunData::training(const Recipe& r, std::uint64_t position,
                                                         int) const {
  return std::make_unique<LabelledExamples>(train_, length_, training_order(r, position));
}

std::string LabelledRunData::places_of_step(const Recipe& r, std::uint64_t position) const {
  std::vector<std::uint64_t> places = examples_of_step(r, train_->examples(), position);
  if (!rows_.empty())
    for (std::uint64_t& place : places) place = rows_.at(place);
  return fmt::format("texts {} of {}, counted from 0", list_of_places(places),
                     files_[0].filename().string());
}

std::unique_ptr<ExampleSource> LabelledRunData::validation(const Recipe& r) const {
  return std::make_unique<LabelledExamples>(validation_, length_, validation_order(r));
}

json LabelledRunData::record() const {
  return {{"train", identity_of(*train_)},
          {"validation", validation_ ? identity_of(*validation_) : json()},
          {"tokenizer", hex16(tokenizer_->fingerprint())},
          {"files", record_of_files(files_)}};
}

json LabelledRunData::counts() const {
  return {{"train", train_->examples()}, {"validation", validation_ ? validation_->examples() : 0}};
}

std::string LabelledRunData::describe() const {
  const auto count = [](std::uint64_t n) { return grouped(static_cast<std::int64_t>(n)); };
  return count(train_->examples()) + " training texts, " +
         (validation_ ? count(validation_->examples()) : "none") + " for validation" +
         fmt::format("; {} tokenizer, a label each", tokenizer_->kind());
}

SourceKind labelled_source() {
  SourceKind kind;
  kind.name = "labelled";
  // A classifier of texts reads nothing else, so that a folder of one alone is of this kind.
  kind.is_named = [](const Recipe& r) {
    const DataSection& d = r.data;
    const models::ModelFamily* family = models::find_family(r.model.family);
    const bool names_others =
        !d.images.empty() || !d.csv.empty() || !d.text.empty() || !d.train_tokens.empty();
    return !d.labelled.empty() || (!names_others && family && models::reads_text(*family));
  };
  kind.open = open;
  kind.reopen = reopen;
  kind.facts = facts_or_assumed;
  return kind;
}

}  // namespace aloft
