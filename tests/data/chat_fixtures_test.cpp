// What transformers renders (tests/fixtures/chat_templates, which tools/judge makes): conversations
// in the forms of ten models, and pieces of the language.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/ordered_json.h"
#include "data/chat/chat_template.h"
#include "parity/parity_row.h"

namespace aloft {
namespace {

using nlohmann::ordered_json;

ordered_json fixture(const std::string& name) {
  return parse_ordered_json(read_file(Path("tests/fixtures/chat_templates") / name));
}

// The text, or the code of the refusal.
std::string rendered(const std::string& source, const ChatInput& input, RenderedChat& chat) {
  try {
    chat = ChatTemplate(source, "fixture").render(input);
    return chat.text;
  } catch (const DataError& e) {
    return e.what();
  }
}

// What is different from what the judge says; "" where nothing is.
std::string difference(const ordered_json& want, const std::string& source,
                       const ChatInput& input) {
  RenderedChat chat;
  const std::string text = rendered(source, input, chat);
  if (want.contains("fails"))
    return text.starts_with("error E054") ? "" : "it fails there, and gives here: " + text;
  if (text != want["text"]) return "want\n" + want["text"].get<std::string>() + "\ngot\n" + text;
  if (!want.contains("spans")) return "";
  ordered_json spans = ordered_json::array();
  for (const chat::Span& s : chat.generated) spans.push_back({s.begin, s.end});
  return spans == want["spans"] ? "" : "spans " + spans.dump() + ", not " + want["spans"].dump();
}

TEST(ChatTemplates, OfTenModelsAreRenderedAsTransformersDoes) {
  const ordered_json models = fixture("models.json");
  std::size_t rendered = 0;
  parity::ParityRow row("templates", "conversations by the forms of ten models that differ", 0);
  for (const ordered_json& one : models["cases"]) {
    ChatInput input;
    input.messages = one["messages"];
    input.tools = one["tools"];
    input.add_generation_prompt = one["add_generation_prompt"];
    input.variables = models["given"];
    if (one.contains("variables")) input.variables.update(one["variables"]);
    const std::string name = one["template"];
    const std::string differs = difference(one, models["templates"][name], input);
    row.see(differs.empty() ? 0 : 1, 0, 1, name + one.dump() + differs);
    rendered += one.contains("text");
  }
  EXPECT_GT(rendered, 200u);
  EXPECT_GE(models["templates"].size(), 10u);
}

TEST(ChatTemplates, PiecesOfTheLanguageAreAsInJinja) {
  const ordered_json pieces = fixture("pieces.json");
  ChatInput input;
  input.messages = pieces["messages"];
  input.variables = pieces["given"];
  parity::ParityRow row("templates", "pieces of Jinja that differ", 0);
  for (const ordered_json& one : pieces["cases"]) {
    const std::string differs = difference(one, one["piece"], input);
    row.see(differs.empty() ? 0 : 1, 0, 1, one["piece"].get<std::string>() + ": " + differs);
  }
  EXPECT_GT(pieces["cases"].size(), 150u);
}

}  // namespace
}  // namespace aloft
