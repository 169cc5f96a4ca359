// Where templates lie, what they are given, and which bytes are the assistant's words.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/ordered_json.h"
#include "data/chat/assistant_words.h"
#include "data/chat/load_chat_template.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

using nlohmann::ordered_json;

ChatInput chat_of(std::string_view messages) {
  ChatInput input;
  input.messages = parse_ordered_json(messages);
  return input;
}

constexpr std::string_view kTurns = R"([{"role": "user", "content": "Hi"},
  {"role": "assistant", "content": "Gr\u00fc\u00df"}, {"role": "user", "content": "Bye"},
  {"role": "assistant", "content": "See you"}])";

std::vector<std::string> words_of(std::string_view form, const ChatInput& input) {
  const RenderedChat chat = render_with_words(ChatTemplate(form, "t.jinja"), input);
  std::vector<std::string> words;
  for (const chat::Span& s : chat.generated)
    words.push_back(chat.text.substr(s.begin, s.end - s.begin));
  return words;
}

TEST(AssistantWords, AreWhatGenerationMarks) {
  const std::string form =
      "{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' %}"
      "{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}\n"
      "{% endfor %}";
  EXPECT_EQ(words_of(form, chat_of(kTurns)),
            (std::vector<std::string>{"Gr\xC3\xBC\xC3\x9F", "See you"}));
}

TEST(AssistantWords, AreElseWhatAMessageAddsBehindThePrompt) {
  const std::string form =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_EQ(words_of(form, chat_of(kTurns)),
            (std::vector<std::string>{"Gr\xC3\xBC\xC3\x9F<end>", "See you<end>"}));
  EXPECT_TRUE(words_of(form, chat_of(R"([{"role": "user", "content": "Hi"}])")).empty());
}

TEST(AssistantWords, AreRefusedWhereAPrefixIsNone) {
  for (const std::string form :
       {"{{ messages|length }}{% for m in messages %}{{ m.content }}{% endfor %}",
        "{% for m in messages %}{{ m.content if loop.last else '' }}{% endfor %}"}) {
    try {
      words_of(form, chat_of(kTurns));
      ADD_FAILURE() << form;
    } catch (const DataError& e) {
      EXPECT_EQ(e.code(), "E0543");
      EXPECT_NE(std::string(e.what()).find("message 2"), std::string::npos) << e.what();
    }
  }
}

TEST(ChatTemplate, ReasoningHasTheNamesThatTemplatesRead) {
  const ChatInput input =
      chat_of(R"([{"role": "assistant", "reasoning": "why", "content": "so"}])");
  EXPECT_EQ(ChatTemplate("{{ messages[0]|tojson }}", "t").render(input).text,
            R"({"thinking": "why", "role": "assistant", "reasoning": "why", "content": "so", )"
            R"("reasoning_content": "why"})");
}

TEST(ChatTemplate, MessagesAreAListOfObjects) {
  for (const std::string_view text : {R"({"role": "user"})", R"(["Hi"])", "5"}) {
    try {
      ChatTemplate("{{ messages }}", "t").render(chat_of(text));
      ADD_FAILURE() << text;
    } catch (const DataError& e) {
      EXPECT_EQ(e.code(), "E0541") << e.what();
    }
  }
}

TEST(LoadChatTemplate, ReadsWhatModelsKeep) {
  const TemporaryFolder folder;
  TemporaryFolder::put(folder / "tokenizer_config.json",
                       R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>",
      "chat_template": [{"name": "tool_use", "template": "no"},
                        {"name": "default", "template": "{{ bos_token }}config"}]})");
  TemporaryFolder::put(folder / "special_tokens_map.json",
                       R"({"pad_token": "<pad>", "eos_token": "<old>"})");
  const auto text_of = [](const Path& path) {
    const LoadedChatTemplate loaded = load_chat_template(path);
    ChatInput input;
    input.variables = loaded.variables;
    return loaded.form.render(input).text;
  };
  EXPECT_EQ(text_of(folder.path()), "<s>config");
  TemporaryFolder::put(folder / "chat_template.jinja",
                       "{{ bos_token ~ eos_token ~ pad_token }}file\n");
  EXPECT_EQ(text_of(folder.path()), "<s></s><pad>file");
  EXPECT_EQ(text_of(folder / "chat_template.jinja"), "<s></s><pad>file");
}

TEST(LoadChatTemplate, SaysWhatIsMissing) {
  const auto refusal = [](const std::string& config) -> std::string {
    const TemporaryFolder folder;
    if (!config.empty()) TemporaryFolder::put(folder / "tokenizer_config.json", config);
    try {
      load_chat_template(folder.path());
    } catch (const DataError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(refusal("").find("no \"chat_template\""), std::string::npos);
  EXPECT_NE(refusal("[1]").find("no \"chat_template\""), std::string::npos);
  EXPECT_NE(refusal("{").find("not JSON"), std::string::npos);
  EXPECT_NE(refusal(R"({"chat_template": 5})").find("no text"), std::string::npos);
  EXPECT_NE(refusal(R"({"chat_template": [{"name": "rag", "template": ""}]})").find("rag"),
            std::string::npos);
}

}  // namespace
}  // namespace aloft
