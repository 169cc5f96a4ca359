// JSON lines: a file with a JSON object in each of its lines, read line by line. What the keys mean
// is left to whoever reads them (jsonl.h: what a model learns from; labelled_texts.h; files of
// prompts); how a line is taken apart and refused is the same for all.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace aloft {

// What some editors write before the first line of a text in UTF-8.
inline constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

// The code and the headline of the refusal of a line.
struct LineRefusal {
  const char *code, *headline;
};

// Lines end at "\n", also behind "\r"; a mark of UTF-8 before the first, and white space around an
// object, are passed over, and so are lines of white space alone. Of a key that stands twice the
// last value counts. DataError of the refusal's code, naming the line: what is no JSON, no object,
// no UTF-8, or longer than can be right.
class JsonLines {
 public:
  // Reads a regular file piece by piece: no more of it than a line is held. DataError E0601,
  // EnvironmentError E0606; E0608 where it becomes shorter meanwhile.
  JsonLines(const Path& path, const LineRefusal& refusal);
  // The same of a text that was read from `path`.
  JsonLines(const Path& path, std::string text, const LineRefusal& refusal);

  // The next object, its keys in their order; false at the end.
  bool next(nlohmann::ordered_json& object);

  // Of the line that was read last: its number in the file, from 1 on, the offset of its first
  // byte, and "a.jsonl:12"; before the first, "a.jsonl".
  std::uint64_t number() const { return number_; }
  std::uint64_t offset() const { return offset_; }
  std::string place() const {
    return number_ > 0 ? path_.string() + ":" + std::to_string(number_) : path_.string();
  }
  // Lines so far that were passed over.
  std::uint64_t empty_lines() const { return empty_lines_; }

  // Refuses that line.
  [[noreturn]] void refuse(const std::string& saw, const std::string& need,
                           const std::string& advice) const;
  // The text of a key. Refuses the line where it is not there or no text.
  std::string text_at(const nlohmann::ordered_json& object, const char* key) const;
  // The list of messages of a conversation: not empty, each an object with a role, and a content
  // that is a text, a list or null, if any. Refuses the line otherwise.
  const nlohmann::ordered_json& messages_in(const nlohmann::ordered_json& object) const;
  // The list of tools that it says; null where there is none.
  nlohmann::ordered_json tools_in(const nlohmann::ordered_json& object) const;

 private:
  bool next_bytes(std::string_view& bytes);
  void read_more(std::size_t looked);

  Path path_;
  LineRefusal refusal_;
  std::optional<InputFile> file_;  // nothing: all of it is held
  std::uint64_t size_ = 0;         // of the file, when it was opened
  std::string held_;               // bytes of the file from `begin_` on
  std::size_t at_ = 0;             // of them, where the next line begins
  std::uint64_t begin_ = 0;
  std::uint64_t number_ = 0, offset_ = 0, empty_lines_ = 0;
  bool is_read_ = false;  // to the end of the file
};

// "the keys "text", "label"", for messages.
std::string keys_in(const nlohmann::ordered_json& object);
// "a number", "an array", "null".
std::string kind_of_json(const nlohmann::ordered_json& value);

}  // namespace aloft
