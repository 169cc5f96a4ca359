// data.json of a run's directory: which tokens and which tokenizer the run learns from, and of
// which files they were made, so that it goes on with the same or says what is different.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/open_data.h"

namespace aloft {

// As it reads back from the file.
nlohmann::json data_record_of(const Dataset& data);

// An object of anybody's making. DataError E0643, at `name`, where the text is none.
nlohmann::json parse_data_record(std::string_view text, const std::string& name);

// Whether what decides what is learnt is the same: the tokens and the tokenizer.
bool is_same_data(const nlohmann::json& before, const nlohmann::json& now);

// The same of validation alone: whether losses measured on it can be compared. Nothing known of
// `before` is no difference.
bool is_same_validation(const nlohmann::json& before, const nlohmann::json& now);
// Text that is the same for the same validation; "" where the record does not say.
std::string validation_name(const nlohmann::json& record);

// The signature of packed text (data/pack.h); 0 where the record has none.
std::uint64_t signature_in(const nlohmann::json& record);

// How the files differ, a few of them by name ("a new file: b.txt"), and each part of the tokens
// and the tokenizer that is another one, with its hash. What one lacks is not compared. Where all
// sizes are the same, files that were written since are named.
std::vector<std::string> data_differences(const nlohmann::json& before, const nlohmann::json& now);
// The same of the files alone: `now` cannot be made tokens of.
std::vector<std::string> file_differences(const nlohmann::json& before,
                                          const std::vector<CorpusFile>& now);

}  // namespace aloft
