#include "passes/case_file.h"

#include <algorithm>
#include <stdexcept>

#include "base/text.h"

namespace aloft::testing {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::string_view w : split(trim(line), ' '))
    if (!w.empty()) words.emplace_back(w);
  return words;
}

class CaseReader {
 public:
  explicit CaseReader(const Path& file) : file_(file), text_(read_file(file)) {}

  std::vector<PassCase> read() {
    std::vector<PassCase> cases;
    while (skip_prose()) cases.push_back(read_case());
    if (cases.empty()) fail("a case");
    return cases;
  }

 private:
  [[noreturn]] void fail(const std::string& needed) const {
    throw std::runtime_error(file_.string() + ":" + std::to_string(line_) + ": needs " + needed);
  }

  std::string take_line() {
    if (at_ >= text_.size()) fail("more lines");
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string line = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++line_;
    return line;
  }

  // Prose and blank lines before a case belong to the case's head.
  bool skip_prose() {
    head_.clear();
    while (at_ < text_.size() && (text_[at_] == '#' || text_[at_] == '\n'))
      head_ += take_line() + "\n";
    return at_ < text_.size();
  }

  std::string take_graph(std::string line) {
    std::string graph = line + "\n";
    if (line.rfind("graph ", 0) != 0) fail("a graph");
    while (line != "}") graph += (line = take_line()) + "\n";
    return graph;
  }

  void option(PassCase& c, const std::vector<std::string>& words) {
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    const std::string& first = words[0];
    if (first == "pass" && !rest.empty()) {
      c.passes = rest;
    } else if (first == "without" && !rest.empty()) {
      c.without = rest;
    } else if (first == "bind" && rest.size() == 1 && rest[0].find('=') != std::string::npos) {
      const auto equals = rest[0].find('=');
      c.lengths[Name(rest[0].substr(0, equals))] = std::stoll(rest[0].substr(equals + 1));
    } else if ((first == "ids" || first == "uniform") && rest.size() == 3) {
      (first == "ids" ? c.ids : c.uniform)[rest[0]] = {std::stod(rest[1]), std::stod(rest[2])};
    } else if (words == std::vector<std::string>{"arithmetic", "changes"}) {
      c.arithmetic_changes = true;
    } else {
      fail("an option that case_file.h describes, not '" + first + "'");
    }
  }

  PassCase read_case() {
    PassCase c;
    c.passes = {file_.stem().string()};
    std::string line = take_line();
    c.line = line_;
    std::vector<std::string> words = words_of(line);
    if (words.size() != 2 || words[0] != "case") fail("'case NAME'");
    c.name = words[1];
    head_ += line + "\n";
    for (line = take_line(); line.rfind("graph ", 0) != 0; line = take_line()) {
      head_ += line + "\n";
      if (words = words_of(line); !words.empty() && words[0][0] != '#') option(c, words);
    }
    c.graph = take_graph(line);
    c.head = head_;
    words = words_of(take_line());
    if (words.empty() || words[0] != "expect") fail("'expect'");
    if (words == std::vector<std::string>{"expect"})
      c.expected = take_graph(take_line());
    else if (words == std::vector<std::string>{"expect", "the", "same"})
      c.expects_same = true;
    else if (words.size() == 3 && words[1] == "error")
      c.expected_error = words[2];
    else
      fail("'expect', 'expect the same' or 'expect error CODE'");
    return c;
  }

  Path file_;
  std::string text_, head_;
  std::size_t at_ = 0;
  int line_ = 0;
};

}  // namespace

std::vector<PassCase> read_cases(const Path& file) { return CaseReader(file).read(); }

std::string print_cases(const std::vector<PassCase>& cases) {
  std::string text;
  for (const PassCase& c : cases) {
    text += c.head + c.graph + "expect";
    if (!c.expected_error.empty())
      text += " error " + c.expected_error + "\n";
    else
      text += c.expects_same ? " the same\n" : "\n" + c.expected;
  }
  return text;
}

}  // namespace aloft::testing
