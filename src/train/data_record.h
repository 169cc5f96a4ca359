// data.json of a run's directory: which tokens and which tokenizer the run learns from, and of
// which files they were made, so that it goes on with the same or says what is different.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "train/trainer.h"

namespace aloft {

nlohmann::json data_record_of(const Dataset& data);

// An object of anybody's making. DataError E0643, at `name`, where the text is none.
nlohmann::json parse_data_record(std::string_view text, const std::string& name);

// Whether what decides what is learnt is the same: the tokens and the tokenizer.
bool is_same_data(const nlohmann::json& before, const nlohmann::json& now);

// How the files differ, a few of them by name ("a new file: b.txt"), and the numbers of training
// tokens. Both are objects; what one lacks or spells otherwise is not compared.
std::vector<std::string> data_differences(const nlohmann::json& before, const nlohmann::json& now);

}  // namespace aloft
