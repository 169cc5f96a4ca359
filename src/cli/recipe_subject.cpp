#include "cli/recipe_subject.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/made_up_batch.h"
#include "recipe/run_length.h"
#include "sources/source_kind.h"

namespace aloft::cli {

namespace {
// The files that the recipe names.
std::string places_of_data(const Recipe& recipe) {
  const DataSection& d = recipe.data;
  for (const std::string* one : {&d.images, &d.csv, &d.train_tokens})
    if (!one->empty()) return *one;
  return join(d.jsonl.empty() ? d.text : d.jsonl, ", ");
}
}  // namespace

void settle_length_without_training(Recipe& recipe) {
  if (recipe.train.epochs <= 0) return;
  try {
    settle_length(recipe, source_of(recipe).open(recipe, false)->examples(recipe));
  } catch (const DataError& e) {
    if (e.code() != "E0510" && e.code() != "E0601") throw;
    throw UserError("E0725", "the recipe counts in epochs, and its data is not there")
        .saw(fmt::format("train.epochs = {:g}, and {}: {}", recipe.train.epochs, e.headline(),
                         places_of_data(recipe)))
        .need("the number of steps, by which the schedule goes")
        .advice("--set train.steps=N, or the key of [data] that names it, with another file");
  }
}

namespace {
// Batches with the data that they are of.
class OwnedExamples : public ExampleSource {
 public:
  OwnedExamples(std::unique_ptr<RunData> data, const Recipe& recipe)
      : data_(std::move(data)), source_(data_->training(recipe, 0, 0)) {}
  const ExampleBatch* next() override { return source_->next(); }
  std::uint64_t position() const override { return source_->position(); }
  std::uint64_t samples_per_epoch() const override { return source_->samples_per_epoch(); }

 private:
  std::unique_ptr<RunData> data_;
  std::unique_ptr<ExampleSource> source_;
};
}  // namespace

Batches made_up_batches(const Recipe& recipe, std::int64_t rows) {
  return [rows = std::min(recipe.train.batch, rows)](const std::vector<Column>& columns) {
    return std::make_unique<MadeUpBatch>(columns, rows);
  };
}

Batches batches_of(const Recipe& recipe) {
  return [recipe](const std::vector<Column>& columns) -> std::unique_ptr<ExampleSource> {
    try {
      return std::make_unique<OwnedExamples>(source_of(recipe).open(recipe, true), recipe);
    } catch (const DataError& e) {
      if (e.code() != "E0510" && e.code() != "E0601") throw;
      log_warning(
          "the recipe's data is not there: the layers' errors are those of made-up examples ({})",
          e.headline());
      return made_up_batches(recipe)(columns);
    }
  };
}

void need_compiled(const Recipe& recipe) {
  if (recipe.train.mode == "graph") return;
  const auto it = recipe.origin.find("train.mode");
  throw UserError("E0723", "this verb looks at compiled programs, and the recipe asks for none")
      .at(it == recipe.origin.end() ? "default" : it->second)
      .saw("train.mode = " + recipe.train.mode)
      .advice("--set train.mode=graph");
}

void refuse_unread(const Recipe& recipe, bool (*is_read)(std::string_view key),
                   std::string_view what) {
  std::vector<std::string> unread;
  for (const auto& [key, origin] : recipe.origin)
    if (origin == kSetOrigin && !key.starts_with("precision.") && !is_read(key))
      unread.push_back(key);
  if (unread.empty()) return;
  throw UserError("E0724", fmt::format("--set {} mean{} nothing here", join(unread, ", "),
                                       unread.size() == 1 ? "s" : ""))
      .saw(fmt::format("{}, and no run is made", what))
      .advice("leave it out; `aloft train` reads it");
}

}  // namespace aloft::cli
