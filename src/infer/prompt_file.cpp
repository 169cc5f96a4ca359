#include "infer/prompt_file.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/read_stream.h"
#include "data/json_lines.h"

namespace aloft {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t kMost = 1 << 26;

std::string unescaped(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char next = i + 1 < line.size() ? line[i + 1] : ' ';
    const bool escape = line[i] == '\\' && (next == 'n' || next == 't' || next == '\\');
    out += !escape ? line[i] : next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
    i += escape;
  }
  return out;
}

// Of an object a line: one with "prompt", or with "messages" and perhaps "tools".
AskedPrompt asked_in(const ordered_json& object, const JsonLines& lines) {
  constexpr const char* kNeed = "\"prompt\", a text, or \"messages\", a list of objects";
  const bool is_text = object.contains("prompt"), is_chat = object.contains("messages");
  if (!is_text && !is_chat)
    lines.refuse(keys_in(object), kNeed, "rename the keys, or write each object anew");
  if (is_text && is_chat) lines.refuse(keys_in(object), kNeed, "leave one of the two out");
  AskedPrompt asked;
  asked.place = lines.place();
  if (is_text) {
    asked.text = lines.text_at(object, "prompt");
    return asked;
  }
  asked.messages = lines.messages_in(object);
  asked.tools = lines.tools_in(object);
  return asked;
}

// Prompts as they come, and what was passed over.
class Asked {
 public:
  explicit Asked(const Path& path) : path_(path) {}

  void add(AskedPrompt asked) {
    prompts_.push_back(std::move(asked));
    if (prompts_.back().is_chat() == prompts_.front().is_chat()) return;
    throw UserError("E0812", "texts and conversations are in one file")
        .at(prompts_.back().place)
        .need("a file of each: they end at other tokens");
  }

  std::vector<AskedPrompt> take(const char* a_line, std::uint64_t empty_lines) {
    if (prompts_.empty())
      throw UserError("E0812", "the file holds no prompt").at(path_.string()).need(a_line);
    if (empty_lines > 0)
      log_warning("{}: {} empty line{} passed over; an empty prompt is --prompt \"\"",
                  path_.string(), empty_lines, empty_lines == 1 ? " is" : "s are");
    return std::move(prompts_);
  }

 private:
  const Path& path_;
  std::vector<AskedPrompt> prompts_;
};

std::vector<AskedPrompt> prompts_of_json(const Path& path, std::string text) {
  Asked asked(path);
  JsonLines lines(path, std::move(text), {"E0547", "a line of the file is no prompt"});
  for (ordered_json object; lines.next(object);) asked.add(asked_in(object, lines));
  return asked.take("an object a line", lines.empty_lines());
}

// Whether the first line that is not empty is an object that asks for something.
bool begins_with_object(std::string_view text) {
  if (text.starts_with(kUtf8Mark)) text.remove_prefix(kUtf8Mark.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return false;
  const nlohmann::json object = parse_json(text.substr(first, text.find('\n', first) - first));
  return object.is_object() && (object.contains("prompt") || object.contains("messages"));
}

std::vector<AskedPrompt> prompts_of_text(const Path& path, std::string_view text) {
  Asked asked(path);
  std::uint64_t empty_lines = 0;
  if (text.starts_with(kUtf8Mark)) text.remove_prefix(kUtf8Mark.size());
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) {
      ++empty_lines;
      continue;
    }
    AskedPrompt prompt;
    prompt.text = unescaped(line);
    prompt.place = path.string() + ":" + std::to_string(number);
    asked.add(std::move(prompt));
  }
  return asked.take("one a line, \\n within for a new line", empty_lines);
}

}  // namespace

std::vector<AskedPrompt> read_prompts(const Path& path) {
  const bool is_stdin = path == "-";
  const Path name = is_stdin ? Path("stdin") : path;
  std::string text = is_stdin ? read_stdin(kMost) : read_stream(path, kMost);
  const std::string kind = path.extension().string();
  const bool is_json = kind == ".jsonl" || kind == ".ndjson" || kind == ".json";
  if (is_json || (kind != ".txt" && begins_with_object(text)))
    return prompts_of_json(name, std::move(text));
  if (kind == ".txt" && begins_with_object(text))
    log_warning("{}: its lines look like JSON and are read as they stand; *.jsonl is read as JSON",
                name.string());
  return prompts_of_text(name, text);
}

}  // namespace aloft
