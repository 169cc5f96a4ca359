// The examples that a run learns from and is validated on, whatever they are: a run knows them by
// this alone. catalog.inc lists where they may come from (source_kind.h).
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/example_source.h"
#include "data/sample_prompt.h"
#include "data/tokenizer.h"
#include "recipe/recipe.h"
#include "tasks/column.h"

namespace aloft {

class RunData {
 public:
  virtual ~RunData() = default;

  // What they say of the model's settings (model_spec()). UserError E0722 where they do not, and
  // must.
  virtual SettingValues facts(const Recipe& recipe) const = 0;
  // The columns' names, in the order of batches.
  virtual std::vector<std::string> columns() const = 0;
  // Looks at the values of a column. UserError E0727 where one is not what it takes.
  virtual void check_values(const Column& column) const { static_cast<void>(column); }
  // From here on what a model of this spec cannot take is refused as it is met.
  virtual void fit(const models::ModelSpec& spec) { static_cast<void>(spec); }

  // Examples of an epoch; 0 where there is not one.
  virtual std::uint64_t examples(const Recipe& recipe) const = 0;
  // What the recipe asks of them that they cannot give, before a plan is made: DataError; and a
  // warning of what is rarely meant.
  virtual void check(const Recipe& recipe) const { static_cast<void>(recipe); }
  // Batches of training from a position on, in the recipe's order, without end.
  virtual std::unique_ptr<ExampleSource> training(const Recipe& recipe, std::uint64_t position,
                                                  int prefetch = 3) const = 0;
  // Where the examples of a step lie, behind which the data stands at this position, for people:
  // "examples 3, 17 of a.csv, counted from 0".
  virtual std::string places_of_step(const Recipe& recipe, std::uint64_t position) const = 0;
  virtual bool has_validation() const = 0;
  // Everything once, in order; the last batch as short as it is.
  virtual std::unique_ptr<ExampleSource> validation(const Recipe& recipe) const = 0;

  // data.json (data_record.h), so that a run goes on with the same.
  virtual nlohmann::json record() const = 0;
  // {"train": 1000, "validation": 50}, in `unit`s.
  virtual nlohmann::json counts() const = 0;
  virtual std::string_view unit() const = 0;  // "tokens", "examples"
  // For people: "1.00M training tokens, 55.8k for validation; char tokenizer".
  virtual std::string describe() const = 0;

  // Of text; null and nothing where there is none.
  virtual const Tokenizer* tokenizer() const { return nullptr; }
  virtual std::optional<double> bytes_a_target() const { return std::nullopt; }
  // Of questions with answers, one that was not learnt where there is one; nothing of plain text.
  virtual std::optional<SamplePrompt> sample_prompt() const { return std::nullopt; }

  // Units of a training example on average, where examples are filled up with padding, which counts
  // as none.
  virtual std::optional<double> units_without_padding() const { return std::nullopt; }
};

}  // namespace aloft
