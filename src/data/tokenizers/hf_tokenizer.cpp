#include "data/tokenizers/hf_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "data/tokenizers/parts/pipeline_tokenizer.h"
#include "data/tokenizers/tokenizer_kind.h"

namespace aloft {
namespace {

using parts::JsonPlace;

constexpr const char *kFile = "tokenizer.json", *kConfigFile = "tokenizer_config.json";

class HfTokenizer final : public parts::PipelineTokenizer {
 public:
  HfTokenizer(parts::TokenizerParts parts, std::optional<std::int32_t> end_of_text,
              std::string file, std::uint64_t fingerprint)
      : PipelineTokenizer(std::move(parts), end_of_text),
        file_(std::move(file)),
        fingerprint_(fingerprint) {}

  std::string_view kind() const override { return "hf"; }
  std::uint64_t fingerprint() const override { return fingerprint_; }

  void save(const Path& folder) const override {
    nlohmann::ordered_json json{{"format", "aloft-tokenizer"}, {"version", 1}, {"kind", "hf"}};
    if (end_of_text()) json["end_of_text"] = token_text(*end_of_text());
    json["fingerprint"] = hex16(fingerprint());
    make_folder(folder);
    write_file_atomic(folder / kFile, file_);
    write_file_atomic(folder / kTokenizerFile, json.dump(2) + "\n");
  }

 private:
  std::string file_;  // as it was read
  std::uint64_t fingerprint_;
};

// How texts are cut and padded in batches is left to whoever makes them.
void need_object_or_nothing(const JsonPlace& file, const char* key) {
  if (const auto said = file.find(key); said && !said->is_object())
    said->refuse("another value", "an object or null");
}

parts::TokenizerParts read_parts(const JsonPlace& file) {
  file.know_keys({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                  "post_processor", "decoder", "model"});
  if (file.text_or("version", "1.0") != "1.0") file.at("version").refuse("another", "1.0");
  need_object_or_nothing(file, "truncation");
  need_object_or_nothing(file, "padding");
  parts::TokenizerParts made;
  made.model = parts::read_word_model(file.at("model"));
  if (const auto said = file.find("added_tokens"))
    made.added = parts::read_added_tokens(*said, made.model->vocabulary());
  if (const auto said = file.find("normalizer")) made.normalizers = parts::read_normalizers(*said);
  if (const auto said = file.find("pre_tokenizer"))
    made.pre_tokenizer = parts::read_pre_tokenizer(*said);
  if (const auto said = file.find("post_processor")) {
    made.frame = parts::PostProcessor(*said);
    std::int32_t end = made.model->vocabulary().end();
    for (const parts::AddedToken& token : made.added) end = std::max(end, token.id + 1);
    if (made.frame.largest_id() >= end)
      said->refuse("id " + std::to_string(made.frame.largest_id()),
                   "ids of tokens, below " + std::to_string(end));
  }
  if (const auto said = file.find("decoder")) made.decoders = parts::read_decoders(*said);
  return made;
}

std::optional<std::int32_t> id_of(const parts::TokenizerParts& made, const std::string& token) {
  for (const parts::AddedToken& added : made.added)
    if (added.content == token) return added.id;
  const std::int32_t id = made.model->vocabulary().id_of(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

// The token between documents as the model's other file names it: a text, or an object that holds
// it as `content`.
std::optional<std::string> end_of_text_beside(const Path& folder) {
  const Path config = folder / kConfigFile;
  if (!path_exists(config)) return std::nullopt;
  const nlohmann::json said = parse_json(read_file(config, kMostTokenizerBytes));
  if (!said.is_object() || !said.contains("eos_token")) return std::nullopt;
  nlohmann::json token = said["eos_token"];
  if (token.is_object()) token = token.value("content", nlohmann::json());
  return token.is_string() ? std::optional(token.get<std::string>()) : std::nullopt;
}

// A folder, or the file itself.
Path file_of(const Path& path) { return path.filename() == kFile ? path : path / kFile; }

std::unique_ptr<Tokenizer> open(const Path& path) {
  const Path file = file_of(path);
  return make_hf_tokenizer(read_file(file, kMostTokenizerBytes), file.string(),
                           end_of_text_beside(file.parent_path()));
}

std::unique_ptr<Tokenizer> read(const Path& folder, const nlohmann::json& saved) {
  const Path file = folder / kFile;
  std::optional<std::string> end;
  if (const auto said = saved.find("end_of_text"); said != saved.end()) {
    if (!said->is_string())
      refuse_tokenizer(folder / kTokenizerFile, "end_of_text " + json_text(*said), "a text");
    end = said->get<std::string>();
  }
  return make_hf_tokenizer(read_file(file, kMostTokenizerBytes), file.string(), end);
}

}  // namespace

std::unique_ptr<Tokenizer> make_hf_tokenizer(std::string tokenizer_json, const std::string& name,
                                             const std::optional<std::string>& end_of_text) {
  nlohmann::json json = parse_json(tokenizer_json);
  if (json.is_discarded())
    throw parts::unusable(name, "", std::string(json_problem(tokenizer_json)), "a JSON object");
  parts::TokenizerParts made = read_parts(JsonPlace(json, name));
  const auto end = end_of_text ? id_of(made, *end_of_text) : std::nullopt;
  // What changes no id and no text is left out, and so are the ways to write the same JSON.
  for (const char* key : {"version", "truncation", "padding"}) json.erase(key);
  Hasher hasher;
  hasher.update("aloft hf tokenizer 1").update(json_text(json));
  if (end) hasher.update("end of text " + std::to_string(*end));
  return std::make_unique<HfTokenizer>(std::move(made), end, std::move(tokenizer_json),
                                       hasher.digest());
}

TokenizerKind hf_tokenizer() {
  TokenizerKind kind;
  kind.name = "hf";
  kind.meaning = "a tokenizer.json of Hugging Face's tokenizers";
  kind.read = read;
  kind.published = PublishedTokenizer{
      "a folder with tokenizer.json",
      [](const Path& path) { return path_exists(file_of(path)) && is_file(file_of(path)); }, open};
  return kind;
}

}  // namespace aloft
