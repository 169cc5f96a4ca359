#include "models/published_files.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace aloft::models {

namespace {

constexpr std::uint64_t kMostConfigBytes = 1 << 20;
constexpr const char *kConfig = "config.json", *kGeneration = "generation_config.json";

void copy(const Path& from, const Path& to, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (path_exists(from / name)) write_file_atomic(to / name, MappedFile(from / name).bytes());
}

// How text is drawn is the model's, whatever its tokens are called.
void copy_without_ids(const Path& from, const Path& to) {
  if (!path_exists(from)) return;
  nlohmann::json config = parse_json(read_file(from, kMostConfigBytes));
  if (!config.is_object()) return;
  forget_token_ids(config);
  write_file_atomic(to, json_text(config, 2) + "\n");
}

}  // namespace

void forget_token_ids(nlohmann::json& config) {
  // Those of transformers' GenerationConfig that do not end with "_token_id".
  constexpr std::array kOthers = {
      "suppress_tokens", "begin_suppress_tokens", "bad_words_ids",      "force_words_ids",
      "sequence_bias",   "forced_decoder_ids",    "watermarking_config"};
  std::vector<std::string> ids;
  for (const auto& [key, value] : config.items())
    if (key.ends_with("_token_id") || std::ranges::find(kOthers, key) != kOthers.end())
      ids.push_back(key);
  for (const std::string& key : ids) config.erase(key);
}

void copy_published_files(const Path& from, const Path& to, bool with_tokenizer) {
  make_folder(to);
  copy(from, to, {kConfig});
  if (!with_tokenizer) return copy_without_ids(from / kGeneration, to / kGeneration);
  copy(from, to,
       {kGeneration, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
        "added_tokens.json", "vocab.json", "merges.txt", "vocab.txt", "tokenizer.model",
        "chat_template.jinja", "chat_template.json"});
}

namespace {

nlohmann::json published_object(const Path& path) {
  nlohmann::json config = parse_json(read_file(path, kMostConfigBytes));
  if (config.is_object()) return config;
  throw DataError("E0631", "a published file is no JSON object")
      .at(path.string())
      .saw(config.is_discarded() ? "text that is not JSON" : json_text(config))
      .need("an object, as transformers writes it");
}

// The number at a key, which lies in a range; nothing where there is none.
template <class Number>
std::optional<Number> number_at(const nlohmann::json& config, const Path& path, const char* key,
                                Number least, Number most) {
  const auto said = config.find(key);
  if (said == config.end() || said->is_null()) return std::nullopt;
  const bool fits =
      std::is_floating_point_v<Number> ? said->is_number() : said->is_number_integer();
  if (fits && *said >= least && *said <= most) return said->get<Number>();
  throw DataError("E0631", std::string(key) + " is out of range")
      .at(path.string())
      .saw(json_text(*said))
      .need("a number from " + shortest(static_cast<double>(least)) + " to " +
            shortest(static_cast<double>(most)))
      .advice("take the key out of the file");
}

}  // namespace

std::vector<std::int32_t> published_ends(const Path& folder) {
  for (const char* name : {kGeneration, kConfig}) {
    if (!path_exists(folder / name)) continue;
    const nlohmann::json config = published_object(folder / name);
    const auto said = config.find("eos_token_id");
    if (said == config.end() || said->is_null()) continue;
    const nlohmann::json list = said->is_array() ? *said : nlohmann::json::array({*said});
    const auto is_id = [](const nlohmann::json& id) {
      return id.is_number_integer() && id >= 0 && id <= std::numeric_limits<std::int32_t>::max();
    };
    if (!std::ranges::all_of(list, is_id))
      throw DataError("E0631", "eos_token_id is no token")
          .at((folder / name).string())
          .saw(json_text(*said))
          .need("a token's number, or a list of them");
    return list.get<std::vector<std::int32_t>>();
  }
  return {};
}

PublishedDrawing published_drawing(const Path& folder) {
  const Path path = folder / kGeneration;
  if (!path_exists(path)) return {};
  const nlohmann::json config = published_object(path);
  constexpr double kLeastPenalty = 1e-3, kMost = 100;
  constexpr std::int64_t kMostTokens = 1 << 24;
  PublishedDrawing said;
  said.repetition_penalty =
      number_at<double>(config, path, "repetition_penalty", kLeastPenalty, kMost);
  said.max_new_tokens = number_at<std::int64_t>(config, path, "max_new_tokens", 0, kMostTokens);
  const auto draws = config.find("do_sample");
  if (draws == config.end()) return said;
  if (*draws == false) said.temperature = 0;
  if (*draws != true) return said;
  said.temperature = number_at<double>(config, path, "temperature", 0, kMost);
  said.top_k = number_at<std::int64_t>(config, path, "top_k", 0, INT32_MAX);
  said.top_p = number_at<double>(config, path, "top_p", 0, 1);
  said.min_p = number_at<double>(config, path, "min_p", 0, 1);
  said.typical_p = number_at<double>(config, path, "typical_p", 0, 1);
  return said;
}

}  // namespace aloft::models
