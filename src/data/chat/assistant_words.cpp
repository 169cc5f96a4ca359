#include "data/chat/assistant_words.h"

#include "base/error.h"

namespace aloft {
namespace {

using nlohmann::ordered_json;

bool is_of_assistant(const ordered_json& message) {
  const auto role = message.find("role");
  return role != message.end() && *role == "assistant";
}

// Renders the first `count` messages.
std::string start_of(const ChatTemplate& form, const ChatInput& input, std::size_t count,
                     bool has_prompt, const RenderLimits& limits) {
  ChatInput start = input;
  start.messages = ordered_json::array();
  for (std::size_t i = 0; i < count; ++i) start.messages.push_back(input.messages[i]);
  start.add_generation_prompt = has_prompt;
  return form.render(start, limits).text;
}

[[noreturn]] void refuse(const ChatTemplate& form, std::size_t message, const std::string& saw) {
  throw DataError("E0543", "which words are the assistant's cannot be told")
      .at(form.name())
      .saw("message " + std::to_string(message + 1) + ": " + saw)
      .need("a template that writes the messages before one as it does without it")
      .advice(
          "mark the assistant's words in the template by {% generation %} and "
          "{% endgeneration %}");
}

}  // namespace

RenderedChat render_with_words(const ChatTemplate& form, const ChatInput& input,
                               const RenderLimits& limits) {
  ChatInput whole = input;
  whole.add_generation_prompt = false;
  RenderedChat chat = form.render(whole, limits);
  if (form.has_generation()) return chat;
  for (std::size_t i = 0; i < input.messages.size(); ++i) {
    if (!is_of_assistant(input.messages[i])) continue;
    const std::string before = start_of(form, input, i, true, limits);
    if (!chat.text.starts_with(before))
      refuse(form, i, "what stands before it does not begin the whole conversation");
    const bool is_last = i + 1 == input.messages.size();
    const std::string with = is_last ? chat.text : start_of(form, input, i + 1, false, limits);
    if (!chat.text.starts_with(with) || with.size() < before.size())
      refuse(form, i, "it is written otherwise where others follow");
    chat.generated.push_back({before.size(), with.size()});
  }
  return chat;
}

}  // namespace aloft
