#include "data/jsonl.h"

#include <algorithm>

#include "base/error.h"

namespace aloft {
namespace {

using nlohmann::ordered_json;

constexpr LineRefusal kRefusal = {"E0534", "a line is not what a model can learn from"};
constexpr const char* kNeed = "\"text\"; \"prompt\" and \"completion\"; or \"messages\"";

struct Form {
  JsonlKind kind;
  std::vector<const char*> keys;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {{JsonlKind::Text, {"text"}},
                                        {JsonlKind::Prompt, {"prompt", "completion"}},
                                        {JsonlKind::Messages, {"messages"}}};
  return all;
}

bool has_any(const ordered_json& object, const Form& form) {
  return std::ranges::any_of(form.keys, [&](const char* key) { return object.contains(key); });
}

// How others call the same.
std::string advice_for(const ordered_json& object) {
  if (object.contains("conversations") || object.contains("conversation"))
    return "write \"messages\", a list of {\"role\": ..., \"content\": ...}";
  for (const char* key : {"instruction", "question", "output", "answer", "response"})
    if (object.contains(key))
      return "write what is asked as \"prompt\" and what is answered as \"completion\"";
  return "rename the keys, or write each object anew";
}

}  // namespace

std::string_view keys_of(JsonlKind kind) {
  switch (kind) {
    case JsonlKind::Text:
      return "text";
    case JsonlKind::Prompt:
      return "prompt and completion";
    case JsonlKind::Messages:
      return "messages";
  }
  return "";
}

JsonlReader::JsonlReader(const Path& path, std::optional<JsonlKind> kind)
    : lines_(path, kRefusal), kind_(kind) {}

bool JsonlReader::next(JsonlLine& line) {
  ordered_json object;
  if (!lines_.next(object)) return false;
  const JsonlKind kind = kind_of(object);
  if (kind_ && *kind_ != kind)
    lines_.refuse(std::string(keys_of(kind)) + ", behind lines of " + std::string(keys_of(*kind_)),
                  "lines of one kind in all files",
                  "write all of them as one kind, or name files of one kind alone");
  kind_ = kind;
  line = JsonlLine();
  line.number = lines_.number();
  line.offset = lines_.offset();
  take(object, line);
  return true;
}

JsonlKind JsonlReader::kind_of(const ordered_json& object) const {
  std::vector<JsonlKind> kinds;
  for (const Form& form : forms())
    if (has_any(object, form)) kinds.push_back(form.kind);
  if (kinds.empty()) lines_.refuse(keys_in(object), kNeed, advice_for(object));
  if (kinds.size() > 1)
    lines_.refuse(keys_in(object), std::string("keys of one kind: ") + kNeed,
                  "leave out what is not to be learnt from");
  return kinds[0];
}

void JsonlReader::take(const ordered_json& object, JsonlLine& line) const {
  switch (*kind_) {
    case JsonlKind::Text:
      line.text = lines_.text_at(object, "text");
      return;
    case JsonlKind::Prompt:
      line.text = lines_.text_at(object, "prompt");
      line.completion = lines_.text_at(object, "completion");
      return;
    case JsonlKind::Messages:
      line.messages = lines_.messages_in(object);
      line.tools = lines_.tools_in(object);
      return;
  }
}

}  // namespace aloft
