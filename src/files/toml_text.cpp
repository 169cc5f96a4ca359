#include "files/toml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>

namespace aloft {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The position behind the string whose opening quote is at `from`; behind the text, or at the
// line's end, where it is not closed.
std::size_t end_of_string(std::string_view text, std::size_t from) {
  const char quote = text[from];
  const bool is_long = text.substr(from, 3) == std::string_view(quote == '"' ? "\"\"\"" : "'''");
  std::size_t at = from + (is_long ? 3 : 1);
  for (; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (text[at] == '\n' && !is_long) {
      return at;
    } else if (text[at] == quote) {
      if (!is_long) return at + 1;
      std::size_t end = at;
      while (end < text.size() && text[end] == quote) ++end;
      if (end - at >= 3) return end;  // the text may end in quotes of its own
    }
  }
  return text.size();
}

// Tables are built and left by recursion: a text nests no deeper than a recipe ever does, neither
// by brackets nor by the dots of one key.
void refuse_deep(std::string_view text) {
  constexpr int kDeepest = 32;
  int line = 1, brackets = 0, dots = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t next = at + 1;
    const char c = text[at];
    if (c == '#') {
      next = std::min(text.find('\n', at), text.size());
    } else if (c == '"' || c == '\'') {
      next = end_of_string(text, at);
    } else if (c == '[' || c == '{') {
      ++brackets;
    } else if (c == ']' || c == '}') {
      brackets = std::max(0, brackets - 1);
    } else if (c == '.') {
      ++dots;
    }
    const bool goes_on = c == '.' || c == '"' || c == '\'' || c == ' ' || c == '\t' || c == '-' ||
                         c == '_' || std::isalnum(static_cast<unsigned char>(c));
    if (!goes_on) dots = 0;
    if (brackets > kDeepest || dots > kDeepest)
      throw TomlError(line, fmt::format("what nests deeper than {} levels", kDeepest));
    for (; at < next && at < text.size(); ++at) line += text[at] == '\n';
  }
}

}  // namespace

int line_of_stray_unicode(std::string_view toml) {
  int line = 1;
  std::size_t at = toml.substr(0, kByteOrderMark.size()) == kByteOrderMark ? 3 : 0;
  while (at < toml.size()) {
    std::size_t next = at + 1;
    if (toml[at] == '#')
      next = toml.find('\n', at);
    else if (toml[at] == '"' || toml[at] == '\'')
      next = end_of_string(toml, at);
    else if (static_cast<unsigned char>(toml[at]) >= 0x80)
      return line;
    if (next == std::string_view::npos) break;
    for (; at < next && at < toml.size(); ++at) line += toml[at] == '\n';
  }
  return 0;
}

void fail_toml_assertion() { throw TomlError(0, "something the TOML reader cannot make sense of"); }

toml::table parse_toml(std::string_view text, std::string_view name) {
  refuse_deep(text);
  // With "?c3" for every byte beyond ASCII the text is TOML exactly where those letters stand in
  // strings and comments only, whatever the library takes for a string.
  std::string ascii;
  std::size_t at = 0;
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) at = kByteOrderMark.size();
  for (; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80)
      ascii += text[at];
    else
      ascii += fmt::format("?{:02x}", byte);
  }
  try {
    static_cast<void>(toml::parse(ascii, name));
    return toml::parse(text, name);
  } catch (const toml::parse_error& e) {
    throw TomlError(static_cast<int>(e.source().begin.line), std::string(e.description()));
  }
}

}  // namespace aloft
