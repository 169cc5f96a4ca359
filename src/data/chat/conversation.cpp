#include "data/chat/conversation.h"

#include <nlohmann/json.hpp>

#include "data/chat/chat_template.h"

namespace aloft::chat {
namespace {

using nlohmann::ordered_json;

ordered_json with_reasoning(const ordered_json& message) {
  for (const char* field : {"reasoning_content", "thinking", "reasoning"}) {
    const auto found = message.find(field);
    if (found == message.end() || found->is_null()) continue;
    ordered_json out = ordered_json::object();
    out["thinking"] = *found;
    for (const auto& [key, value] : message.items()) out[key] = value;
    out["reasoning_content"] = *found;
    return out;
  }
  return message;
}

}  // namespace

std::vector<std::pair<std::string, Value>> variables_of(const ChatInput& input) {
  if (!input.messages.is_array())
    fail("messages that are a JSON " + std::string(input.messages.type_name()));
  ordered_json messages = ordered_json::array();
  for (const ordered_json& message : input.messages) {
    if (!message.is_object())
      fail("message " + std::to_string(messages.size() + 1) + " is a JSON " +
           std::string(message.type_name()));
    messages.push_back(with_reasoning(message));
  }
  std::vector<std::pair<std::string, Value>> variables = {
      {"messages", from_json(messages)},
      {"tools", from_json(input.tools)},
      {"documents", from_json(input.documents)},
      {"add_generation_prompt", Value(input.add_generation_prompt)}};
  for (const auto& [name, value] : input.variables.items())
    variables.emplace_back(name, from_json(value));
  return variables;
}

}  // namespace aloft::chat
