#include "infer/prompt_file.h"

#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/ordered_json.h"
#include "base/text.h"

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

[[noreturn]] void refuse(const Path& path, std::size_t line, const std::string& saw) {
  throw DataError("E0547", "a line of the file is no prompt")
      .at(path.string() + ":" + std::to_string(line))
      .saw(saw)
      .need("an object with \"prompt\", a text, or with \"messages\", a list of objects");
}

AskedPrompt asked_in(std::string_view text, const Path& path, std::size_t line) {
  const ordered_json object = parse_ordered_json(text);  // templates see keys in their order
  if (object.is_discarded()) refuse(path, line, std::string(json_problem(text)));
  if (!object.is_object()) refuse(path, line, in_quotes(text));
  const auto prompt = object.find("prompt"), messages = object.find("messages");
  if ((prompt == object.end()) == (messages == object.end()))
    refuse(path, line, prompt == object.end() ? "neither" : "both");
  AskedPrompt asked;
  if (prompt != object.end()) {
    if (!prompt->is_string()) refuse(path, line, "\"prompt\" that is no text");
    asked.text = prompt->get<std::string>();
    return asked;
  }
  if (!messages->is_array() || messages->empty()) refuse(path, line, "\"messages\" that are none");
  for (const ordered_json& message : *messages)
    if (!message.is_object()) refuse(path, line, "a message that is no object");
  asked.messages = *messages;
  if (const auto tools = object.find("tools"); tools != object.end()) asked.tools = *tools;
  return asked;
}

}  // namespace

std::vector<AskedPrompt> read_prompts(const Path& path) {
  const bool is_json = path.extension() == ".jsonl";
  std::vector<AskedPrompt> prompts;
  const std::string text = read_file(path, kMost);
  std::vector<std::string_view> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();  // behind the last line's end there is none
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = lines[i];
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (is_json)
      prompts.push_back(asked_in(line, path, i + 1));
    else
      prompts.push_back({unescaped(line)});
    if (prompts.back().is_chat() != prompts.front().is_chat())
      throw UserError("E0812", "texts and conversations are in one file")
          .at(path.string() + ":" + std::to_string(i + 1))
          .need("a file of each: they end at other tokens");
  }
  if (prompts.empty())
    throw UserError("E0812", "the file holds no prompt")
        .at(path.string())
        .need(is_json ? "an object a line" : "one a line, \\n within for a new line");
  if (const std::size_t blank = lines.size() - prompts.size(); blank > 0)
    log_warning("{}: {} empty line{} passed over; an empty prompt is --prompt \"\"", path.string(),
                blank, blank == 1 ? " is" : "s are");
  return prompts;
}

}  // namespace aloft
