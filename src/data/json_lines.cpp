#include "data/json_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/json_mistake.h"
#include "base/lfs_pointer.h"
#include "base/ordered_json.h"
#include "base/text.h"

namespace aloft {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kPiece = std::size_t{1} << 20, kLongestLine = std::size_t{256} << 20;

// Characters of UTF-8 that begin before a byte.
std::size_t characters_before(std::string_view bytes, std::size_t at) {
  return static_cast<std::size_t>(
      std::count_if(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// What is wrong with a line that is no JSON, at which character of it, and what stands there.
// `before`: bytes of the line before it.
std::string what_is_wrong(std::string_view bytes, std::size_t before) {
  constexpr std::size_t kShown = 60, kBefore = 40;
  const JsonMistake mistake = json_mistake(bytes);
  std::size_t from = mistake.byte > kBefore ? mistake.byte - kBefore : 0;
  if (bytes.size() <= kShown) from = 0;
  while (from > 0 && (static_cast<unsigned char>(bytes[from]) & 0xC0) == 0x80) --from;
  return fmt::format("{}: {} at character {}: {}{}", json_problem(bytes), mistake.why,
                     before + characters_before(bytes, mistake.byte) + 1, from > 0 ? "..." : "",
                     in_quotes(bytes.substr(from), kShown));
}

}  // namespace

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

std::string kind_of_json(const ordered_json& value) {
  const std::string type = value.type_name();
  if (type == "null") return type;
  return (type == "array" || type == "object" ? "an " : "a ") + type;
}

JsonLines::JsonLines(const Path& path, const LineRefusal& refusal)
    : path_(path), refusal_(refusal), file_(path), size_(size_of_file(path)) {}

JsonLines::JsonLines(const Path& path, std::string text, const LineRefusal& refusal)
    : path_(path), refusal_(refusal), held_(std::move(text)), is_read_(true) {}

void JsonLines::refuse(const std::string& saw, const std::string& need,
                       const std::string& advice) const {
  throw DataError(refusal_.code, refusal_.headline).at(place()).saw(saw).need(need).advice(advice);
}

// Lets go of what was handed out and reads a piece of the file behind what is left.
void JsonLines::read_more(std::size_t looked) {
  if (looked > kLongestLine) {
    ++number_;
    refuse("more than " + human_bytes(kLongestLine) + " without an end of a line",
           "an object a line", "write each object in a line of its own");
  }
  held_.resize(looked + kPiece);
  const std::size_t got = file_->read_at(begin_ + looked, std::span(held_).subspan(looked));
  held_.resize(looked + got);
  is_read_ = got < kPiece;
  if (is_read_ && begin_ + held_.size() < size_)
    throw EnvironmentError("E0608", "a file was cut short while it was in use")
        .at(path_.string())
        .saw(fmt::format("{} bytes of {}", begin_ + held_.size(), size_))
        .advice("put the file back, or begin anew without it");
}

// The next line without its end; false where there is none.
bool JsonLines::next_bytes(std::string_view& bytes) {
  std::size_t end = held_.find('\n', at_);
  while (end == std::string::npos && !is_read_) {
    held_.erase(0, at_);
    begin_ += at_;
    at_ = 0;
    const std::size_t looked = held_.size();
    read_more(looked);
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

bool JsonLines::next(ordered_json& object) {
  std::string_view bytes;
  std::size_t blanks = 0;  // before the object
  for (;; ++empty_lines_) {
    if (!next_bytes(bytes)) return false;
    if (offset_ == 0 && bytes.starts_with(kUtf8Mark)) bytes.remove_prefix(kUtf8Mark.size());
    const std::string_view object_text = trim(bytes);
    if (object_text.empty()) continue;
    blanks = static_cast<std::size_t>(object_text.data() - bytes.data());
    bytes = object_text;
    break;
  }
  object = parse_ordered_json(bytes);
  if (object.is_discarded()) {
    if (offset_ == 0 && is_lfs_pointer(held_)) throw lfs_pointer(path_.string());
    if (!is_utf8(bytes))
      refuse("bytes that are not UTF-8: " + in_quotes(bytes, 60), "JSON in UTF-8",
             "write the file anew in UTF-8");
    const bool is_list = number_ == 1 && bytes.starts_with('[');
    refuse(what_is_wrong(bytes, blanks), "an object a line",
           is_list || bytes == "{" ? "write each object in a line of its own: jq -c '.[]' FILE"
                                   : "correct the line, or leave it out");
  }
  if (!object.is_object())
    refuse(kind_of_json(object), "an object a line",
           object.is_array() ? "write each object in a line of its own: jq -c '.[]' FILE"
                             : "correct the line, or leave it out");
  return true;
}

std::string JsonLines::text_at(const ordered_json& object, const char* key) const {
  const auto found = object.find(key);
  if (found == object.end())
    refuse("no " + in_quotes(key) + ", and " + keys_in(object), in_quotes(key) + ", a text",
           "write \"\" where it is empty, or leave the line out");
  if (!found->is_string())
    refuse(in_quotes(key) + " that is " + kind_of_json(*found), "a text",
           found->is_array() ? "write \"messages\", a list of {\"role\": ..., \"content\": ...}"
                             : "write it in quotes");
  return found->get<std::string>();
}

const ordered_json& JsonLines::messages_in(const ordered_json& object) const {
  constexpr const char* kMessages = "a list of {\"role\": ..., \"content\": ...}";
  const ordered_json& messages = object["messages"];
  if (!messages.is_array() || messages.empty())
    refuse("\"messages\" that is " +
               (messages.is_array() ? std::string("an empty list") : kind_of_json(messages)),
           kMessages, "write the conversation's messages in their order");
  std::size_t number = 0;
  for (const ordered_json& message : messages) {
    const std::string which = "message " + std::to_string(++number);
    if (!message.is_object())
      refuse(which + " that is " + kind_of_json(message), kMessages,
             "write each message as an object");
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string())
      refuse(which + (role == message.end() ? " without a \"role\""
                                            : " whose \"role\" is " + kind_of_json(*role)),
             "\"role\", a text", "\"system\", \"user\", \"assistant\" or what the template knows");
    const auto content = message.find("content");
    if (content != message.end() && !content->is_string() && !content->is_array() &&
        !content->is_null())
      refuse(which + " whose \"content\" is " + kind_of_json(*content),
             "\"content\", a text or a list of parts", "write it in quotes");
  }
  return messages;
}

ordered_json JsonLines::tools_in(const ordered_json& object) const {
  const auto tools = object.find("tools");
  if (tools == object.end() || tools->is_null()) return nullptr;
  if (!tools->is_array())
    refuse("\"tools\" that is " + kind_of_json(*tools), "a list",
           "write a list of the tools' descriptions, or leave it out");
  return *tools;
}

}  // namespace aloft
