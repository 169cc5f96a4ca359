// Chat templates of any bytes, over conversations of any JSON: a text of UTF-8 with the assistant's
// words in it, or a refusal, within bounded work.
//
// The part up to the first zero byte is the template, the rest the conversation.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "data/chat/assistant_words.h"

namespace {

using namespace aloft;

void use(const ChatTemplate& form, ChatInput input) {
  const RenderLimits limits{.work = 1 << 16, .now = 1700000000};
  for (const bool has_prompt : {false, true}) {
    input.add_generation_prompt = has_prompt;
    try {
      const std::string text = form.render(input, limits).text;
      ensure(is_utf8(text), "what is rendered is text");
      ensure(form.render(input, limits).text == text, "the same is rendered again");
    } catch (const DataError&) {
    }
  }
  try {
    const RenderedChat chat = render_with_words(form, input, limits);
    for (const chat::Span& s : chat.generated)
      ensure(s.begin <= s.end && s.end <= chat.text.size(), "words lie in the text");
  } catch (const DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = all.find('\0');
  try {
    const ChatTemplate form(all.substr(0, end), "fuzz");
    ChatInput input;
    if (end != std::string_view::npos) {
      nlohmann::ordered_json messages = parse_ordered_json(all.substr(end + 1));
      if (!messages.is_discarded()) input.messages = std::move(messages);
    }
    input.variables = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    input.tools = input.messages;
    use(form, std::move(input));
  } catch (const DataError&) {
  }
  return 0;
}
