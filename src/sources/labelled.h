// Examples of texts with a label each, for classifiers of texts. All lie in memory, as ids.
#pragma once

#include "data/labelled_texts.h"
#include "sources/run_data.h"

namespace aloft {

class LabelledRunData : public RunData {
 public:
  // `length`: tokens of an example. `rows`: which of its file's examples each for training is,
  // empty: they are all, in order. `validation` has none where there is no such part.
  LabelledRunData(std::shared_ptr<const Tokenizer> tokenizer, std::int64_t length,
                  LabelledTexts train, LabelledTexts validation, std::vector<Path> files,
                  std::vector<std::uint64_t> rows = {});

  SettingValues facts(const Recipe& recipe) const override;
  std::vector<std::string> columns() const override {
    return {"tokens", "types", "lengths", "labels"};
  }
  void check_values(const Column& column) const override;
  std::uint64_t examples(const Recipe&) const override { return train_->examples(); }
  std::unique_ptr<ExampleSource> training(const Recipe& recipe, std::uint64_t position,
                                          int prefetch) const override;
  std::string places_of_step(const Recipe& recipe, std::uint64_t position) const override;
  bool has_validation() const override { return validation_ != nullptr; }
  std::unique_ptr<ExampleSource> validation(const Recipe& recipe) const override;
  nlohmann::json record() const override;
  nlohmann::json counts() const override;
  std::string_view unit() const override { return "examples"; }
  std::string describe() const override;
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::int64_t length_;
  std::shared_ptr<const LabelledTexts> train_, validation_;  // validation: null where there is none
  std::vector<Path> files_;
  std::vector<std::uint64_t> rows_;  // of the first file
};

}  // namespace aloft
