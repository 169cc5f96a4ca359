// Examples of arrays: tables in CSV, images of IDX files. All lie in memory.
#pragma once

#include "data/array_loader.h"
#include "sources/run_data.h"

namespace aloft {

class ArrayRunData : public RunData {
 public:
  // `files`: what they were read from; `rows`: which of its examples each for training is, empty:
  // they are all, in order. UserError E0512: a share for validation that leaves nothing to train
  // on.
  ArrayRunData(ArrayData train, ArrayData validation, std::vector<Path> files,
               std::vector<std::uint64_t> rows = {});

  SettingValues facts(const Recipe& recipe) const override;
  std::vector<std::string> columns() const override;
  void check_values(const Column& column) const override;
  std::uint64_t examples(const Recipe&) const override { return count(*train_); }
  std::unique_ptr<ExampleSource> training(const Recipe& recipe, std::uint64_t position,
                                          int prefetch) const override;
  std::string places_of_step(const Recipe& recipe, std::uint64_t position) const override;
  bool has_validation() const override { return validation_ != nullptr; }
  std::unique_ptr<ExampleSource> validation(const Recipe& recipe) const override;
  nlohmann::json record() const override;
  nlohmann::json counts() const override;
  std::string_view unit() const override { return "examples"; }
  std::string describe() const override;

 private:
  static std::uint64_t count(const ArrayData& d) { return static_cast<std::uint64_t>(d.samples()); }

  std::shared_ptr<const ArrayData> train_, validation_;  // validation: null where there is none
  std::vector<Path> files_;
  std::vector<std::uint64_t> rows_;  // of the first file
};

}  // namespace aloft
