// Examples of JSON lines: sequences of tokens that are padded, each with what is learnt of it.
#pragma once

#include <optional>

#include "data/chat/load_chat_template.h"
#include "data/jsonl_set.h"
#include "sources/run_data.h"

namespace aloft {

class JsonlRunData : public RunData {
 public:
  // `has_weights`: whether steps have several micro-batches, whose means then count by their
  // targets. `form`: of messages.
  JsonlRunData(std::shared_ptr<const Tokenizer> tokenizer, JsonlSet set,
               std::vector<CorpusFile> files, bool has_weights,
               std::optional<LoadedChatTemplate> form = std::nullopt);

  SettingValues facts(const Recipe& recipe) const override;
  std::vector<std::string> columns() const override;
  std::uint64_t examples(const Recipe&) const override { return set_.train->size(); }
  void check(const Recipe& recipe) const override;
  std::unique_ptr<ExampleSource> training(const Recipe& recipe, std::uint64_t position,
                                          int prefetch) const override;
  std::string places_of_step(const Recipe& recipe, std::uint64_t position) const override;
  bool has_validation() const override { return !set_.validation->empty(); }
  std::unique_ptr<ExampleSource> validation(const Recipe& recipe) const override;
  nlohmann::json record() const override;
  nlohmann::json counts() const override;
  std::string_view unit() const override { return "tokens"; }
  std::optional<double> units_without_padding() const override {
    return static_cast<double>(tokens_of(*set_.train)) / static_cast<double>(set_.train->size());
  }
  std::string describe() const override;
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  std::optional<SamplePrompt> sample_prompt() const override;

 private:
  std::string place_of(std::uint32_t sequence) const;
  std::int64_t tokens_of(const std::vector<std::uint32_t>& which) const;
  std::int64_t targets_of(const std::vector<std::uint32_t>& which) const;  // learnt ones

  std::shared_ptr<const Tokenizer> tokenizer_;
  JsonlSet set_;
  std::vector<CorpusFile> files_;
  bool has_weights_;
  std::optional<LoadedChatTemplate> form_;
};

}  // namespace aloft
