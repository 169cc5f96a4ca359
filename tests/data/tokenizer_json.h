// Small files as Hugging Face's library writes them, for tests to change a part of.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/hf_tokenizer.h"

namespace aloft {

using Ids = std::vector<std::int32_t>;

// {"a": 0, "b": 1, ...} in the order given.
inline nlohmann::json vocab_of(const std::vector<std::string>& tokens) {
  nlohmann::json vocab = nlohmann::json::object();
  for (std::size_t id = 0; id < tokens.size(); ++id) vocab[tokens[id]] = id;
  return vocab;
}

inline nlohmann::json added_token(const std::string& content, int id) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// A whole file around a model.
inline nlohmann::json tokenizer_json(const nlohmann::json& model) {
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", nlohmann::json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder", nullptr},
          {"model", model}};
}

// Bytes in the 64 letters of RFC 4648.
inline std::string base64_of(std::string bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t missing = (3 - bytes.size() % 3) % 3;
  bytes.append(missing, '\0');
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t j) {
      return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i + j]));
    };
    const std::uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (int shift = 18; shift >= 0; shift -= 6) text += kLetters[three >> shift & 63];
  }
  return text.replace(text.size() - missing, missing, missing, '=');
}

// Words of a vocabulary, all others <unk>, which is 0.
inline nlohmann::json word_level(const std::vector<std::string>& words) {
  std::vector<std::string> tokens{"<unk>"};
  tokens.insert(tokens.end(), words.begin(), words.end());
  return {{"type", "WordLevel"}, {"vocab", vocab_of(tokens)}, {"unk_token", "<unk>"}};
}

inline std::unique_ptr<Tokenizer> made_of(const nlohmann::json& file) {
  return make_hf_tokenizer(file.dump(), "tokenizer.json");
}

}  // namespace aloft
