#include "observe/config_check/shell_script.h"

#include <cctype>
#include <map>
#include <utility>

#include "base/text.h"

namespace aloft::config_check {

namespace {

// How many characters variables stand for in a script at most; those beyond stay as written. A
// script doubles a variable with each line, if it wants to.
constexpr std::size_t kMostFilled = 1 << 20;
// Of what stands between ${ and }.
constexpr std::size_t kLongestName = 256;

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

struct Word {
  std::string text;
  int line = 0;
  bool is_quoted = false;  // all of it, or a part
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  ShellScript read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\' && is_line_end(at_ + 1)) {
        skip_line_end();
      } else if (c == '\n' || c == ';' || c == '|' || c == '&' || c == '(' || c == ')') {
        end_command();
        if (c == '\n') ++line_;
        ++at_;
      } else if (c == '<' || c == '>') {  // "2> log": what follows is a file
        if (!words_.empty() && words_.back().text.size() == 1 &&
            words_.back().text[0] == text_[at_ - 1] &&
            std::isdigit(static_cast<unsigned char>(text_[at_ - 1])))
          words_.pop_back();
        end_command();
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        read_word();
      }
    }
    end_command();
    return std::move(script_);
  }

 private:
  bool is_line_end(std::size_t at) const {
    return at < text_.size() &&
           (text_[at] == '\n' || (text_[at] == '\r' && text_.substr(at).starts_with("\r\n")));
  }
  void skip_line_end() {  // behind a backslash
    at_ += text_[at_ + 1] == '\r' ? 3 : 2;
    ++line_;
  }

  // What `$...` at the place stands for, as a shell fills it in; as it is written where only a run
  // would say.
  std::string filled() {
    const std::size_t begin = at_++;
    const auto as_written = [&] { return std::string(text_.substr(begin, at_ - begin)); };
    if (at_ >= text_.size()) return as_written();
    if (text_[at_] == '(') {  // to the bracket that closes it
      int depth = 0;
      for (; at_ < text_.size(); ++at_) {
        if (text_[at_] == '\n') ++line_;
        if (text_[at_] == '(') ++depth;
        if (text_[at_] == ')' && --depth == 0) {
          ++at_;
          break;
        }
      }
      return as_written();
    }
    if (text_[at_] == '{') {
      const std::size_t end = at_ + text_.substr(at_, kLongestName).find_first_of("}\n");
      if (end < at_ || end >= text_.size() || text_[end] == '\n') return as_written();
      std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      std::string_view otherwise;
      bool has_otherwise = false;
      const std::size_t mark = inside.find_first_of(":-");
      if (mark != std::string_view::npos) {
        otherwise = inside.substr(mark);
        if (!otherwise.starts_with(":-") && !otherwise.starts_with("-")) return as_written();
        otherwise.remove_prefix(otherwise.starts_with(":-") ? 2 : 1);
        inside = inside.substr(0, mark);
        has_otherwise = true;
      }
      if (inside.ends_with("[@]") || inside.ends_with("[*]")) inside.remove_suffix(3);
      const std::string* const value = variable(inside);
      if (value && !value->empty()) return *value;
      return has_otherwise ? std::string(otherwise) : as_written();
    }
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    const std::string* const value = variable(text_.substr(begin + 1, at_ - begin - 1));
    return value ? *value : as_written();
  }
  // "${NAME[@]}": its words, also within quotes.
  bool is_all_of_a_list() const {
    std::size_t end = at_ + 2;
    if (!text_.substr(at_).starts_with("${")) return false;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    return text_.substr(end).starts_with("[@]}");
  }
  // Null where it is not known, or stands for too much.
  const std::string* variable(std::string_view name) {
    const auto it = variables_.find(name);
    if (it == variables_.end() || it->second.size() > kMostFilled - filled_) return nullptr;
    filled_ += it->second.size();
    return &it->second;
  }

  // One word of a command. What a variable outside quotes stands for is cut into words, too.
  void read_word() {
    Word word{"", line_};
    char quote = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (quote == '\'') {
        if (c == '\'')
          quote = 0;
        else
          word.text += c;
        if (c == '\n') ++line_;
        ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size()) {
        if (is_line_end(at_ + 1)) {
          if (quote == 0) break;  // a word ends there: the command goes on
          skip_line_end();
        } else {
          word.text += text_[at_ + 1];
          at_ += 2;
        }
      } else if (c == '"' || (c == '\'' && quote == 0)) {
        word.is_quoted = true;
        quote = quote == c ? 0 : c;
        ++at_;
      } else if (c == '$') {
        const bool is_list = is_all_of_a_list();
        const std::string value = filled();
        const bool is_assignment = word.text.find('=') != std::string::npos;
        if ((quote == 0 || is_list) && !is_assignment &&
            value.find_first_of(" \t\n") != std::string::npos)
          put_words(word, value);
        else
          word.text += value;
      } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';' ||
                                c == '|' || c == '&' || c == ')' || c == '<' || c == '>')) {
        break;
      } else if (quote == 0 && c == '(' && !is_in_list_ && word.text.ends_with('=')) {
        read_list(word.text);
      } else {
        if (c == '\n') ++line_;
        word.text += c;
        ++at_;
      }
    }
    if (!word.text.empty() || word.is_quoted) words_.push_back(std::move(word));
  }

  // NAME=( words ): the value is the words with spaces between them.
  void read_list(std::string& to) {
    std::vector<Word> outer = std::exchange(words_, {});
    is_in_list_ = true;  // lists have no lists
    ++at_;
    while (at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\\' && is_line_end(at_ + 1)) {
        skip_line_end();
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';' || c == '|' ||
                 c == '&') {
        ++at_;
      } else if (const std::size_t before = at_; read_word(), at_ == before) {
        ++at_;
      }
    }
    if (at_ < text_.size()) ++at_;
    for (const Word& w : words_) {
      if (!to.ends_with('=')) to += ' ';
      to += w.text;
    }
    words_ = std::move(outer);
    is_in_list_ = false;
  }

  void put_words(Word& word, std::string_view value) {
    std::string part = std::move(word.text);
    for (const char c : value) {
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
        part += c;
      } else if (!part.empty()) {
        words_.push_back({std::exchange(part, ""), word.line});
      }
    }
    word.text = std::move(part);
  }

  static std::size_t assignment(const Word& w) {
    const std::size_t sign = w.text.find('=');
    if (sign == std::string::npos || !is_identifier(std::string_view(w.text).substr(0, sign)))
      return std::string::npos;
    return sign;
  }

  void end_command() {
    const std::vector<Word> words = std::exchange(words_, {});
    std::size_t first = 0;
    bool is_export = false;
    if (!words.empty() && (words[0].text == "export" || words[0].text == "declare" ||
                           words[0].text == "local" || words[0].text == "readonly"))
      is_export = words[first++].text == "export";
    for (; first < words.size(); ++first) {
      const Word& w = words[first];
      const std::size_t sign = assignment(w);
      if (sign == std::string::npos) {
        // "export NAME" of a variable that was set before.
        const auto it = variables_.find(w.text);
        if (is_export && it != variables_.end())
          script_.exports.push_back({w.text, it->second, w.line});
        if (is_export || w.text.starts_with("-")) continue;
        break;
      }
      const std::string name = w.text.substr(0, sign), value = w.text.substr(sign + 1);
      variables_[name] = value;
      // Set in front of a command: for it alone.
      const bool is_for_command =
          !is_export && words.size() > first + 1 && assignment(words.back()) == std::string::npos;
      if (is_export || is_for_command) script_.exports.push_back({name, value, w.line});
    }
    if (!is_export) read_options(words, first);
  }

  void read_options(const std::vector<Word>& words, std::size_t first) {
    for (std::size_t i = first + 1; i < words.size(); ++i) {
      const Word& w = words[i];
      const std::size_t sign = w.text.find('=');
      if (w.text.starts_with("--") && w.text.size() > 2) {
        if (sign != std::string::npos) {
          script_.options.push_back({w.text.substr(2, sign - 2), w.text.substr(sign + 1), w.line});
          continue;
        }
        std::string value;
        while (i + 1 < words.size() && is_value(words[i + 1])) {
          if (!value.empty()) value += ' ';
          value += words[++i].text;
        }
        script_.options.push_back({w.text.substr(2), value.empty() ? "true" : value, w.line});
      } else if (sign != std::string::npos && sign > 0 && !w.text.starts_with("-")) {
        // trainer.lr=1e-4, +trainer.lr=1e-4, as programs of Hydra take them.
        std::string name = w.text.substr(0, sign);
        name.erase(0, name.find_first_not_of('+'));
        if (!name.empty() && name.find('.') != std::string::npos)
          script_.options.push_back({std::move(name), w.text.substr(sign + 1), w.line});
      }
    }
  }
  // "-0.5" is a value, "-v" and "--fp16" are not, nor what another word tells (trainer.lr=1), nor
  // the program that a launcher starts.
  static bool is_value(const Word& w) {
    if (w.is_quoted) return true;
    const std::string_view name = std::string_view(w.text).substr(0, w.text.find('='));
    if (name.size() < w.text.size() && name.find('.') != std::string_view::npos) return false;
    if (w.text.ends_with(".py")) return false;
    return !w.text.starts_with("-") || parse_double(w.text).has_value();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t filled_ = 0;   // characters that variables stood for
  std::vector<Word> words_;  // of the command that is being read
  bool is_in_list_ = false;
  std::map<std::string, std::string, std::less<>> variables_;
  ShellScript script_;
};

}  // namespace

ShellScript parse_shell(std::string_view text) { return Reader(text).read(); }

}  // namespace aloft::config_check
