// Whether a run's tokenizer is that of the folder which the run began from: else the ids of tokens
// that the folder's files name are other tokens' now.
#pragma once

#include <string>

#include "data/tokenizer.h"

namespace aloft {

// `run`: where the tokenizer was saved (tokenizer.h). `published`: the folder's published files
// (models/published_files.h); where they hold no tokenizer, one that others have published is taken
// for the model's, and one that was made of a run's text is not.
bool is_tokenizer_of(const Tokenizer& tokenizer, const Path& run, const Path& published);

// As a tokenizer.json, where its kind is written so; "" where it is not.
std::string tokenizer_json_of(const Tokenizer& tokenizer);

}  // namespace aloft
