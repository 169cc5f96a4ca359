// A file of prompts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"

namespace aloft {

// A text to go on from, or a conversation to answer.
struct AskedPrompt {
  std::string text;
  nlohmann::ordered_json messages = nullptr, tools = nullptr;  // of a conversation; else null
  std::string place;  // where it was asked, for messages: "a.jsonl:12"; "" where in no file
  bool is_chat() const { return !messages.is_null(); }
};

// Those of a file, of a pipe, or of stdin ("-"), in its order. Of "*.jsonl", "*.ndjson" and
// "*.json" each line is an object with "prompt", a text, or with "messages", a list of objects, and
// perhaps "tools"; what else it says is not read, and how it is read json_lines.h says. Of "*.txt"
// each line is a text, in which \n, \t and \\ are a line end, a tab and a backslash. What has
// another name, or none, is objects where its first line is such an object, else texts. Empty lines
// are passed over, with a warning. UserError E0812 where there is no prompt, or where texts and
// conversations are mixed; DataError E0547 for a line of JSON that is none of these.
std::vector<AskedPrompt> read_prompts(const Path& path);

}  // namespace aloft
