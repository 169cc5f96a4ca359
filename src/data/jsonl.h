// JSON lines that a language model learns from: an object a line, all of one kind.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/json_lines.h"

namespace aloft {

// What the objects hold, by their keys.
enum class JsonlKind {
  Text,      // text
  Prompt,    // prompt, completion
  Messages,  // messages, and perhaps tools
};
// "text", "prompt and completion", "messages"
std::string_view keys_of(JsonlKind kind);

// One of them, its keys and types checked. Other keys are left unread.
struct JsonlLine {
  std::uint64_t number = 0;  // of the line in its file, from 1 on
  std::uint64_t offset = 0;  // of its first byte
  std::string text;          // of Text; of Prompt: the prompt
  std::string completion;    // of Prompt
  // Of Messages: a list, not empty, of objects with a role; and null where there are no tools.
  nlohmann::ordered_json messages = nullptr, tools = nullptr;
};

// Reads a file line by line, as json_lines.h says.
class JsonlReader {
 public:
  // `kind`: of the files before; nothing: the first line decides. DataError E0601,
  // EnvironmentError E0606.
  explicit JsonlReader(const Path& path, std::optional<JsonlKind> kind = std::nullopt);

  // False at the end. DataError E0534, naming the line: what is no JSON, no object or of another
  // kind, lacks a key or has a value of another type.
  bool next(JsonlLine& line);
  // Known once a line was read, or from the start.
  std::optional<JsonlKind> kind() const { return kind_; }
  // "a.jsonl:12", of the line that was read last.
  std::string place() const { return lines_.place(); }

 private:
  JsonlKind kind_of(const nlohmann::ordered_json& object) const;
  void take(const nlohmann::ordered_json& object, JsonlLine& line) const;

  JsonLines lines_;
  std::optional<JsonlKind> kind_;
};

}  // namespace aloft
