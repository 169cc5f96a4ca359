#include "data/tokenizers/tokenizer_json.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizers/parts/byte_letters.h"
#include "data/tokenizers/parts/word_model.h"

namespace aloft {
namespace {

using nlohmann::json;

json byte_level() {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", false}};
}

json split(const json& pattern, const char* behavior) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", false}};
}

json bpe(json vocab, json merges, bool byte_fallback) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", byte_fallback},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)},
          {"merges", std::move(merges)}};
}

std::string file_of(json pre_tokenizer, json decoder, json model) {
  const json file = {{"version", "1.0"},          {"truncation", nullptr},
                     {"padding", nullptr},        {"added_tokens", json::array()},
                     {"normalizer", nullptr},     {"pre_tokenizer", std::move(pre_tokenizer)},
                     {"post_processor", nullptr}, {"decoder", std::move(decoder)},
                     {"model", std::move(model)}};
  return file.dump(1) + "\n";
}

// Every way in which two pieces are a third: the library merges pairs, SentencePiece whatever comes
// to a piece.
json merges_of(std::span<const std::string> pieces, const std::vector<std::string>& letters,
               const std::unordered_map<std::string_view, std::size_t>& id_of) {
  json merges = json::array();
  for (const std::string& piece : pieces)
    for (std::size_t cut = 1; cut < piece.size(); ++cut) {
      const auto left = id_of.find(std::string_view(piece).substr(0, cut)),
                 right = id_of.find(std::string_view(piece).substr(cut));
      if (left == id_of.end() || right == id_of.end()) continue;
      merges.push_back(letters[left->second] + " " + letters[right->second]);
    }
  return merges;
}

}  // namespace

std::string tokenizer_json_of_bytes(std::span<const std::string> pieces, bool by_lines) {
  std::unordered_map<std::string_view, std::size_t> id_of;
  std::vector<std::string> letters(pieces.size());
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].empty()) continue;
    id_of.emplace(pieces[id], id);
    parts::append_letters(letters[id], pieces[id]);
  }
  json vocab = json::object();
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    std::string name = letters[id];
    // A name that no text comes to: bytes have no letter that is a space.
    if (name.empty()) name = "<unk " + std::to_string(id) + ">";
    vocab[name] = id;
  }
  json cut = byte_level();
  if (by_lines)
    cut = {{"type", "Sequence"},
           {"pretokenizers", {split({{"String", "\n"}}, "MergedWithPrevious"), byte_level()}}};
  return file_of(std::move(cut), byte_level(),
                 bpe(std::move(vocab), merges_of(pieces, letters, id_of), false));
}

std::string tokenizer_json_of_characters(std::span<const std::string> characters,
                                         bool byte_fallback) {
  json vocab = json::object();
  for (std::size_t id = 0; id < characters.size(); ++id) vocab[characters[id]] = id;
  if (!byte_fallback)
    return file_of(
        split({{"Regex", R"([\s\S])"}}, "Isolated"), {{"type", "Fuse"}},
        {{"type", "WordLevel"}, {"vocab", std::move(vocab)}, {"unk_token", "<not there>"}});
  for (int b = 0; b < 256; ++b)
    vocab[parts::token_of_byte(static_cast<unsigned char>(b))] =
        characters.size() + static_cast<std::size_t>(b);
  const json decoder = {{"type", "Sequence"},
                        {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
  return file_of(nullptr, decoder, bpe(std::move(vocab), json::array(), true));
}

}  // namespace aloft
