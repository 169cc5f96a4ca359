// What lies beside the weights in a folder of Hugging Face: config, tokenizer, how text is made. A
// run that begins from such a folder keeps them, so that what is exported has them as they were.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "base/file.h"

namespace aloft::models {

// Copies those that `from` has to `to`, which is made; without those of the tokenizer and the chat
// template that is written with it, where that is not wanted, and without the ids of its tokens in
// generation_config.json. EnvironmentError E0603 to E0605.
void copy_published_files(const Path& from, const Path& to, bool with_tokenizer = true);

// Takes out of a config what names tokens by their ids: "eos_token_id", "bad_words_ids" ...
void forget_token_ids(nlohmann::json& config);

// The tokens that end a text: eos_token_id of generation_config.json, or of config.json where that
// says none; one, a list, or none. DataError E0631 where they are no such numbers.
std::vector<std::int32_t> published_ends(const Path& folder);

// What generation_config.json says of drawing; nothing where it says nothing. temperature to
// typical_p count only where its do_sample is true, and are absent else; a do_sample that is false
// is a temperature of 0.
struct PublishedDrawing {
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty;
  std::optional<std::int64_t> top_k, max_new_tokens;
};
// DataError E0631 where a setting is out of range.
PublishedDrawing published_drawing(const Path& folder);

}  // namespace aloft::models
