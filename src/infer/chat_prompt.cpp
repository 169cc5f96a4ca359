#include "infer/chat_prompt.h"

#include <algorithm>

#include "base/error.h"
#include "data/jsonl_tokens.h"

namespace aloft {

LoadedChatTemplate chat_template_of(const SavedModel& saved, const Path& file,
                                    const std::string& advice) {
  if (!file.empty()) {
    LoadedChatTemplate loaded = load_chat_template(file);
    nlohmann::ordered_json own = nlohmann::ordered_json::object();
    if (!saved.published.empty()) own = special_tokens_in(saved.published);
    for (const auto& [name, token] : own.items())  // what stands beside the file says more of it
      if (!loaded.variables.contains(name)) loaded.variables[name] = token;
    check_template_tokens(*saved.tokenizer, loaded);
    return loaded;
  }
  if (saved.published.empty() || !has_chat_template(saved.published))
    throw DataError("E0540", "there is no chat template beside the model")
        .at(saved.published.string())
        .need("chat_template.jinja, or \"chat_template\" in tokenizer_config.json")
        .advice(advice);
  LoadedChatTemplate loaded = load_chat_template(saved.published);
  check_template_tokens(*saved.tokenizer, loaded);
  return loaded;
}

ChatPrompt::ChatPrompt(const SavedModel& saved, const Path& file)
    : tokenizer_(*saved.tokenizer),
      template_(chat_template_of(
          saved, file,
          "--chat-template FILE, or --prompt TEXT for a model that goes on from any text")),
      ends_(saved.ends) {
  const auto eos = template_.variables.find("eos_token");
  if (eos == template_.variables.end()) return;
  const std::vector<std::int32_t> ids = tokenizer_.encode(eos->get<std::string>());
  if (ids.size() == 1 && std::ranges::find(ends_, ids[0]) == ends_.end()) ends_.push_back(ids[0]);
}

std::string ChatPrompt::text(const nlohmann::ordered_json& messages,
                             const nlohmann::ordered_json& tools) const {
  ChatInput input;
  input.messages = messages;
  input.tools = tools;
  input.add_generation_prompt = true;
  input.variables = template_.variables;
  return template_.form.render(input).text;
}

std::vector<std::int32_t> ChatPrompt::tokens(const std::string& text) const {
  std::vector<std::int32_t> ids = tokenizer_.encode(text);
  if (ids.empty())
    throw DataError("E0541", "the chat template gives an empty text")
        .at(template_.form.name())
        .need("one that writes the conversation");
  return ids;
}

}  // namespace aloft
