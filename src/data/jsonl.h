// JSON lines that a language model learns from: an object a line, all of one kind.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

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

// Reads a file line by line; no more of it than a line is held. Empty lines are passed over.
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
  std::string place() const;

 private:
  bool next_bytes(std::string_view& bytes);
  JsonlKind kind_of(const nlohmann::ordered_json& object) const;
  void take(const nlohmann::ordered_json& object, JsonlLine& line) const;
  std::string text_at(const nlohmann::ordered_json& object, const char* key) const;
  void check_messages(const nlohmann::ordered_json& messages) const;
  [[noreturn]] void refuse(const std::string& saw, const std::string& need,
                           const std::string& advice) const;

  InputFile file_;
  std::uint64_t size_;  // when it was opened
  std::optional<JsonlKind> kind_;
  std::string held_;    // bytes of the file from `begin_` on
  std::size_t at_ = 0;  // of them, where the next line begins
  std::uint64_t begin_ = 0;
  std::uint64_t number_ = 0, offset_ = 0;  // of the line that was read last
  bool is_read_ = false;                   // to the end of the file
};

}  // namespace aloft
