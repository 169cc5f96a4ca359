#include "models/published_files.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace aloft::models {

void copy_published_files(const Path& from, const Path& to) {
  make_folder(to);
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
        "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "vocab.txt",
        "tokenizer.model", "chat_template.jinja", "chat_template.json"}) {
    if (!path_exists(from / name)) continue;
    const MappedFile file(from / name);
    write_file_atomic(to / name, file.bytes());
  }
}

std::vector<std::int32_t> published_ends(const Path& folder) {
  for (const char* name : {"generation_config.json", "config.json"}) {
    if (!path_exists(folder / name)) continue;
    constexpr std::uint64_t kLimit = 1 << 20;
    const nlohmann::json config = parse_json(read_file(folder / name, kLimit));
    if (!config.is_object())
      throw DataError("E0631", "a published file is no JSON object")
          .at((folder / name).string())
          .saw(config.is_discarded() ? "text that is not JSON" : json_text(config))
          .need("an object, as transformers writes it");
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

}  // namespace aloft::models
