// Examples of tokens: windows of text, or of token files that were made elsewhere.
#pragma once

#include "recipe/open_data.h"
#include "sources/run_data.h"

namespace aloft {

// Bytes of the validation text over its tokens; nothing where there is no validation part, or no
// tokenizer that knows the bytes. Reads the tokens once where they were packed elsewhere.
std::optional<double> bytes_a_validation_token(const Dataset& data);

class TokenRunData : public RunData {
 public:
  // `record`: what data.json says, where it is not what `data` says itself: its text is gone.
  explicit TokenRunData(Dataset data, nlohmann::json record = nullptr);

  SettingValues facts(const Recipe& recipe) const override;
  std::vector<std::string> columns() const override { return {"tokens", "targets"}; }
  void fit(const models::ModelSpec& spec) override;
  std::uint64_t examples(const Recipe& recipe) const override;
  void check(const Recipe& recipe) const override;
  std::unique_ptr<ExampleSource> training(const Recipe& recipe, std::uint64_t position,
                                          int prefetch) const override;
  std::string places_of_step(const Recipe& recipe, std::uint64_t position) const override;
  bool has_validation() const override { return data_.validation.has_value(); }
  std::unique_ptr<ExampleSource> validation(const Recipe& recipe) const override;
  nlohmann::json record() const override { return record_; }
  nlohmann::json counts() const override;
  std::string_view unit() const override { return "tokens"; }
  std::string describe() const override;
  const Tokenizer* tokenizer() const override { return data_.tokenizer.get(); }
  std::optional<double> bytes_a_target() const override { return bytes_a_target_; }

 private:
  Dataset data_;
  nlohmann::json record_;
  std::optional<double> bytes_a_target_;
};

}  // namespace aloft
