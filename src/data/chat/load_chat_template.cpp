#include "data/chat/load_chat_template.h"

#include "base/error.h"
#include "base/json.h"

namespace aloft {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostBytes = 64 << 20;
constexpr const char* kConfig = "tokenizer_config.json";

[[noreturn]] void refuse(const Path& path, const std::string& saw) {
  throw DataError("E0540", "a chat template cannot be read")
      .at(path.string())
      .saw(saw)
      .need(
          "a file with a template, or a model's folder with chat_template.jinja, or with "
          "\"chat_template\" in tokenizer_config.json");
}

// Null where the file is not there.
json json_of(const Path& path) {
  if (!path_exists(path)) return nullptr;
  const std::string text = read_file(path, kMostBytes);
  json value = parse_json(text);
  if (value.is_discarded()) refuse(path, std::string(json_problem(text)));
  return value.is_object() ? value : json();
}

void add_special_tokens(const json& config, nlohmann::ordered_json& variables) {
  for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    if (!config.is_object() || !config.contains(name)) continue;
    const json& token = config[name];
    if (token.is_string()) variables[name] = token.get<std::string>();
    if (token.is_object() && token.contains("content") && token["content"].is_string())
      variables[name] = token["content"].get<std::string>();
  }
}

std::string template_in(const json& config, const Path& path) {
  if (!config.is_object() || !config.contains("chat_template"))
    refuse(path, "no \"chat_template\"");
  const json& value = config["chat_template"];
  if (value.is_string()) return value.get<std::string>();
  std::string names;
  if (value.is_array())
    for (const json& named : value) {
      if (!named.is_object() || !named.contains("name") || !named.contains("template") ||
          !named["name"].is_string() || !named["template"].is_string())
        continue;
      if (named["name"] == "default") return named["template"].get<std::string>();
      names += " " + named["name"].get<std::string>();
    }
  refuse(path, names.empty() ? "\"chat_template\" that is no text"
                             : "templates without one that is called default:" + names);
}

}  // namespace

LoadedChatTemplate load_chat_template(const Path& path) {
  const bool is_whole_folder = is_folder(path);
  const Path folder = is_whole_folder ? path : path.parent_path();
  nlohmann::ordered_json variables = special_tokens_in(folder);
  const json config = json_of(folder / kConfig);
  const Path file = is_whole_folder ? folder / "chat_template.jinja" : path;
  if (!is_whole_folder || path_exists(file))
    return {ChatTemplate(read_file(file, kMostBytes), file.string()), std::move(variables)};
  const Path in = folder / kConfig;
  return {ChatTemplate(template_in(config, in), in.string()), std::move(variables)};
}

bool has_chat_template(const Path& folder) {
  if (path_exists(folder / "chat_template.jinja")) return true;
  const json config = json_of(folder / kConfig);
  return config.is_object() && config.contains("chat_template");
}

nlohmann::ordered_json special_tokens_in(const Path& folder) {
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  add_special_tokens(json_of(folder / "special_tokens_map.json"), variables);
  add_special_tokens(json_of(folder / kConfig), variables);
  return variables;
}

}  // namespace aloft
