#include "base/error.h"

#include <algorithm>
#include <cctype>

namespace aloft {
namespace {

// what() ends at a zero byte, and names that users give may hold one.
std::string without_zeros(std::string_view text) {
  std::string shown;
  for (const char c : text) c == '\0' ? shown.append("\\x00") : shown.append(1, c);
  return shown;
}

}  // namespace

Error::Error(ExitCode exit, std::string code, std::string headline)
    : exit_(exit), code_(std::move(code)), headline_(without_zeros(headline)) {
  text_ = "error " + code_ + ": " + headline_;
}

void Error::add_line(std::string_view label, std::string_view text) {
  if (text.empty()) return;  // nobody knows, a place for example
  text_ += "\n  ";
  text_ += label;
  text_.append(label.size() < 6 ? 6 - label.size() : 1, ' ');
  text_ += without_zeros(text);
}

void ensure(bool ok, std::string_view what_should_hold, SourceLocation where) {
  if (ok) return;
  throw InternalError("this should hold and does not: " + std::string(what_should_hold))
      .at(std::string(where.file_name()) + ":" + std::to_string(where.line()));
}

namespace {
// What is left where nobody looks at case, underscores and hyphens: "BertAdam" and "bert_adam".
std::string folded(std::string_view word) {
  std::string out;
  for (const char c : word)
    if (c != '_' && c != '-') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}
}  // namespace

// A star in `word` stands for any run of characters: patterns have a nearest name too.
std::string nearest_name(std::string_view word, const std::vector<std::string>& known) {
  if (const std::string plain = folded(word); !plain.empty())
    for (const std::string& name : known)
      if (folded(name) == plain) return name;
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  std::vector<std::size_t> row;
  for (const std::string& name : known) {
    row.resize(name.size() + 1);
    for (std::size_t j = 0; j <= name.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      const bool is_any = word[i - 1] == '*';
      if (is_any) {  // what it stands for costs nothing, nor does it itself
        for (std::size_t j = 1; j <= name.size(); ++j) row[j] = std::min(row[j], row[j - 1]);
        continue;
      }
      std::size_t diagonal = row[0];
      row[0] += 1;
      for (std::size_t j = 1; j <= name.size(); ++j) {
        const std::size_t substitute = diagonal + (word[i - 1] != name[j - 1]);
        diagonal = row[j];
        row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = name;
    }
  }
  return best;
}

}  // namespace aloft
