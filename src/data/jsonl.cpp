#include "data/jsonl.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "base/text.h"

namespace aloft {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kPiece = std::size_t{1} << 20, kLongestLine = std::size_t{256} << 20;
constexpr std::string_view kMark = "\xEF\xBB\xBF";  // of UTF-8, which some editors write first
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

std::string keys_in(const ordered_json& object) {
  constexpr std::size_t kShown = 8;
  if (object.empty()) return "an object without keys";
  std::string text = "the keys ";
  std::size_t shown = 0;
  for (const auto& [key, value] : object.items()) {
    if (shown == kShown) return text + ", ...";
    text += (shown++ > 0 ? ", " : "") + in_quotes(key);
  }
  return text;
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

std::string a_json(const ordered_json& value) {
  const std::string type = value.type_name();
  if (type == "null") return type;
  return (type == "array" || type == "object" ? "an " : "a ") + type;
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
    : file_(path), size_(size_of_file(path)), kind_(kind) {}

std::string JsonlReader::place() const {
  return file_.path().string() + ":" + std::to_string(number_);
}

void JsonlReader::refuse(const std::string& saw, const std::string& need,
                         const std::string& advice) const {
  throw DataError("E0534", "a line is not what a model can learn from")
      .at(place())
      .saw(saw)
      .need(need)
      .advice(advice);
}

// The next line without its end; false where there is none.
bool JsonlReader::next_bytes(std::string_view& bytes) {
  std::size_t looked = at_, end = held_.find('\n', looked);
  while (end == std::string::npos && !is_read_) {
    held_.erase(0, at_);
    begin_ += at_;
    at_ = 0;
    looked = held_.size();
    if (looked > kLongestLine) {
      ++number_;
      refuse("more than " + human_bytes(kLongestLine) + " without an end of a line",
             "an object a line", "write each object in a line of its own");
    }
    held_.resize(looked + kPiece);
    const std::size_t got = file_.read_at(begin_ + looked, std::span(held_).subspan(looked));
    held_.resize(looked + got);
    is_read_ = got < kPiece;
    if (is_read_ && begin_ + held_.size() < size_)
      throw EnvironmentError("E0608", "a file was cut short while it was in use")
          .at(file_.path().string())
          .saw(fmt::format("{} bytes of {}", begin_ + held_.size(), size_))
          .advice("put the file back, or begin anew without it");
    end = held_.find('\n', looked);
  }
  if (end == std::string::npos) end = held_.size();
  if (at_ >= held_.size()) return false;
  ++number_;
  offset_ = begin_ + at_;
  bytes = std::string_view(held_).substr(at_, end - at_);
  at_ = std::min(end + 1, held_.size());
  return true;
}

bool JsonlReader::next(JsonlLine& line) {
  std::string_view bytes;
  do {
    if (!next_bytes(bytes)) return false;
    if (offset_ == 0 && bytes.starts_with(kMark)) bytes.remove_prefix(kMark.size());
    bytes = trim(bytes);
  } while (bytes.empty());
  const ordered_json object = parse_ordered_json(bytes);
  if (object.is_discarded()) {
    if (!is_utf8(bytes))
      refuse("bytes that are not UTF-8: " + in_quotes(bytes, 60), "JSON in UTF-8",
             "write the file anew in UTF-8");
    const bool is_list = number_ == 1 && bytes.starts_with('[');
    refuse(std::string(json_problem(bytes)) + ": " + in_quotes(bytes, 60), "an object a line",
           is_list || bytes == "{" ? "write each object in a line of its own: jq -c '.[]' FILE"
                                   : "correct the line, or leave it out");
  }
  if (!object.is_object())
    refuse(a_json(object), "an object a line",
           object.is_array() ? "write each object in a line of its own: jq -c '.[]' FILE"
                             : "correct the line, or leave it out");
  const JsonlKind kind = kind_of(object);
  if (kind_ && *kind_ != kind)
    refuse(std::string(keys_of(kind)) + ", behind lines of " + std::string(keys_of(*kind_)),
           "lines of one kind in all files",
           "write all of them as one kind, or train on one after the other");
  kind_ = kind;
  line = JsonlLine();
  line.number = number_;
  line.offset = offset_;
  take(object, line);
  return true;
}

JsonlKind JsonlReader::kind_of(const ordered_json& object) const {
  std::vector<JsonlKind> kinds;
  for (const Form& form : forms())
    if (has_any(object, form)) kinds.push_back(form.kind);
  if (kinds.empty()) refuse(keys_in(object), kNeed, advice_for(object));
  if (kinds.size() > 1)
    refuse(keys_in(object), std::string("keys of one kind: ") + kNeed,
           "leave out what is not to be learnt from");
  return kinds[0];
}

std::string JsonlReader::text_at(const ordered_json& object, const char* key) const {
  const auto found = object.find(key);
  if (found == object.end())
    refuse("no " + in_quotes(key) + ", and " + keys_in(object), in_quotes(key) + ", a text",
           "write \"\" where it is empty, or leave the line out");
  if (!found->is_string())
    refuse(in_quotes(key) + " that is " + a_json(*found), "a text",
           found->is_array() ? "write \"messages\", a list of {\"role\": ..., \"content\": ...}"
                             : "write it in quotes");
  return found->get<std::string>();
}

void JsonlReader::check_messages(const ordered_json& messages) const {
  constexpr const char* kMessages = "a list of {\"role\": ..., \"content\": ...}";
  if (!messages.is_array() || messages.empty())
    refuse("\"messages\" that is " +
               (messages.is_array() ? std::string("an empty list") : a_json(messages)),
           kMessages, "write the conversation's messages in their order");
  std::size_t number = 0;
  for (const ordered_json& message : messages) {
    const std::string which = "message " + std::to_string(++number);
    if (!message.is_object())
      refuse(which + " that is " + a_json(message), kMessages, "write each message as an object");
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string())
      refuse(which + (role == message.end() ? " without a \"role\""
                                            : " whose \"role\" is " + a_json(*role)),
             "\"role\", a text", "\"system\", \"user\", \"assistant\" or what the template knows");
    const auto content = message.find("content");
    if (content != message.end() && !content->is_string() && !content->is_array() &&
        !content->is_null())
      refuse(which + " whose \"content\" is " + a_json(*content),
             "\"content\", a text or a list of parts", "write it in quotes");
  }
}

void JsonlReader::take(const ordered_json& object, JsonlLine& line) const {
  switch (*kind_) {
    case JsonlKind::Text:
      line.text = text_at(object, "text");
      return;
    case JsonlKind::Prompt:
      line.text = text_at(object, "prompt");
      line.completion = text_at(object, "completion");
      return;
    case JsonlKind::Messages:
      check_messages(object["messages"]);
      line.messages = object["messages"];
      const auto tools = object.find("tools");
      if (tools == object.end() || tools->is_null()) return;
      if (!tools->is_array())
        refuse("\"tools\" that is " + a_json(*tools), "a list",
               "write a list of the tools' descriptions, or leave it out");
      line.tools = *tools;
      return;
  }
}

}  // namespace aloft
