#include "observe/config_check/shell_script.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"

namespace aloft::config_check {

namespace {

// How many characters variables stand for in a script at most; those beyond stay as written. A
// script doubles a variable with each line, if it wants to.
constexpr std::size_t kMostFilled = 1 << 20;
// Of what stands between ${ and }.
constexpr std::size_t kLongestName = 256;

// Words behind which a command begins.
constexpr std::string_view kInFront[] = {"!",  "{",     "do",   "elif", "else",  "eval", "exec",
                                         "if", "nohup", "then", "time", "until", "while"};
constexpr std::string_view kDeclaring[] = {"declare", "export", "local", "readonly", "typeset"};
// Commands that make no run, and words that are none: what they are told, and see of the
// environment, says nothing of one.
constexpr std::string_view kTools[] = {
    ".",     ":",      "[",      "[[",    "alias", "awk",    "case",   "cat",  "cd",    "chmod",
    "cp",    "date",   "done",   "echo",  "esac",  "exit",   "fi",     "find", "for",   "function",
    "git",   "grep",   "head",   "kill",  "ln",    "ls",     "mkdir",  "mv",   "pip",   "pip3",
    "popd",  "printf", "ps",     "pushd", "pwd",   "read",   "return", "rm",   "rsync", "sed",
    "set",   "shift",  "shopt",  "sleep", "sort",  "source", "tail",   "tar",  "tee",   "test",
    "touch", "trap",   "ulimit", "wait",  "wget",  "}"};

template <std::size_t N>
bool is_in(const std::string_view (&words)[N], std::string_view word) {
  return std::ranges::find(words, word) != std::end(words);
}

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

struct Word {
  std::string text;
  int line = 0;
  bool is_quoted = false;  // all of it, or a part
  bool is_list = false;    // NAME=( words )
  bool begins_quoted = false;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  ShellScript read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\' && is_line_end(at_ + 1)) {
        skip_line_end();
      } else if (c == '<' || c == '>' || text_.substr(at_).starts_with("&>")) {
        redirect();
      } else if (c == '\n' || c == ';' || c == '|' || c == '&' || c == '(' || c == ')') {
        end_command();
        ++at_;
        if (c == '\n') {
          ++line_;
          skip_documents();
        }
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        read_word();
      }
    }
    end_command();
    if (!has_seen_) see({});
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

  // What a command reads from the script, behind "<< WORD" up to a line that is the word.
  struct Document {
    std::string end;
    bool has_tabs = false;  // in front of that line, which do not count: "<<-"
  };
  void skip_documents() {
    for (const Document& document : std::exchange(documents_, {}))
      for (bool is_over = false; !is_over && at_ < text_.size();) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, end - at_);
        if (line.ends_with('\r')) line.remove_suffix(1);
        while (document.has_tabs && line.starts_with('\t')) line.remove_prefix(1);
        is_over = line == document.end;
        at_ = std::min(end + 1, text_.size());
        ++line_;
      }
  }

  // "2> log", ">>log", "2>&1": neither the number nor the file is a word of the command.
  void redirect() {
    if (!words_.empty() && words_.back().text.size() == 1 &&
        words_.back().text[0] == text_[at_ - 1] &&
        std::isdigit(static_cast<unsigned char>(text_[at_ - 1])))
      words_.pop_back();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>' || text_[at_] == '&'))
      ++at_;
    const bool begins_document = text_.substr(begin, at_ - begin) == "<<";
    const bool has_tabs = begins_document && at_ < text_.size() && text_[at_] == '-';
    if (has_tabs || (at_ < text_.size() && text_[at_] == '|')) ++at_;  // "<<-", ">|"
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    const std::size_t count = words_.size();
    // "<(" begins a command of its own.
    if (at_ < text_.size() && text_[at_] != '(' && text_[at_] != '\n') read_word();
    if (begins_document && words_.size() > count)
      documents_.push_back({words_[count].text, has_tabs});
    words_.resize(std::min(count, words_.size()));
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
        word.begins_quoted = word.begins_quoted || (word.text.empty() && !word.is_quoted);
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
        word.is_list = true;
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
    for (std::size_t i = 0; i < words_.size(); ++i) to += (i > 0 ? " " : "") + words_[i].text;
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

  // NAME=VALUE, NAME+=VALUE; of a list its words with spaces between them.
  struct Assignment {
    std::string name, value;
    bool is_more = false, is_list = false;
  };
  static std::optional<Assignment> assignment(const Word& w) {
    const std::size_t sign = w.text.find('=');
    if (sign == std::string::npos || sign == 0) return std::nullopt;
    const bool is_more = w.text[sign - 1] == '+';
    std::string name = w.text.substr(0, is_more ? sign - 1 : sign);
    if (!is_identifier(name)) return std::nullopt;
    return Assignment{std::move(name), w.text.substr(sign + 1), is_more, w.is_list};
  }
  // What `before`, which may be missing, becomes.
  static std::string assigned(const Assignment& a, const std::string* before) {
    if (!a.is_more || !before) return a.value;
    return *before + (a.is_list && !before->empty() ? " " : "") + a.value;
  }

  void assign(const Assignment& a) {
    std::string& value = variables_[a.name];
    if (a.is_more && a.is_list && !value.empty()) value += ' ';
    if (a.is_more)
      value += a.value;
    else
      value = a.value;
    if (exports_all_) exported_.insert(a.name);
    if (exported_.contains(a.name)) unseen_.insert(a.name);
  }
  void export_variable(const std::string& name) {
    exported_.insert(name);
    unseen_.insert(name);
  }

  void end_command() {
    const std::vector<Word> words = std::exchange(words_, {});
    std::size_t first = 0;
    while (first < words.size() && is_in(kInFront, words[first].text)) ++first;
    if (first == words.size()) return;
    const std::string& word = words[first].text;
    if (is_in(kDeclaring, word)) {
      declare(words, first);
    } else if (word == "unset") {
      for (const Word& w : words)
        variables_.erase(w.text), exported_.erase(w.text), unseen_.erase(w.text);
    } else if (word == "set") {
      read_set(words, first);
    } else {
      command(words, first);
    }
  }

  // set -a, set -euao pipefail, set -o allexport: what is assigned from here on is exported; with
  // '+' no longer.
  void read_set(const std::vector<Word>& words, std::size_t first) {
    for (std::size_t i = first + 1; i < words.size(); ++i) {
      const std::string& text = words[i].text;
      const bool is_on = text.starts_with("-");
      if (text == "--" || (!is_on && !text.starts_with("+"))) return;  // arguments follow
      if (text.find('a') != std::string::npos) exports_all_ = is_on;
      if (text.ends_with('o') && ++i < words.size() && words[i].text == "allexport")
        exports_all_ = is_on;
    }
  }

  // export, declare -x ...
  void declare(const std::vector<Word>& words, std::size_t first) {
    bool is_export = words[first].text == "export";
    for (std::size_t i = first + 1; i < words.size(); ++i) {
      const Word& w = words[i];
      const auto a = assignment(w);
      if (a) assign(*a);
      if (!a && w.text.starts_with("-"))
        is_export = is_export || w.text.find('x') != std::string::npos;
      else if (is_export)
        export_variable(a ? a->name : w.text);
    }
  }

  void command(const std::vector<Word>& words, std::size_t first) {
    std::vector<Assignment> own;  // in front of a command: for it alone
    for (; first < words.size(); ++first) {
      auto a = assignment(words[first]);
      if (!a) break;
      own.push_back(*std::move(a));
    }
    if (first == words.size()) {
      for (const Assignment& a : own) assign(a);
      return;
    }
    const std::string_view path = words[first].text;
    if (is_in(kTools, path.substr(path.rfind('/') + 1))) return;
    for (std::size_t i = first; i < words.size();) i = read_env(words, i, own);
    read_options(words, first);
    see(own);
  }

  // Puts what `env` or `sudo`, if it is the word at `i`, sets for the command behind it into `to`;
  // where the words behind it begin.
  static std::size_t read_env(const std::vector<Word>& words, std::size_t i,
                              std::vector<Assignment>& to) {
    const std::string& word = words[i++].text;
    if (word != "env" && word != "sudo" && !word.ends_with("/env")) return i;
    for (; i < words.size(); ++i) {
      if (words[i].text == "-u")  // env -u NAME, sudo -u USER
        ++i;
      else if (auto a = assignment(words[i]))
        to.push_back(*std::move(a));
      else if (!words[i].text.starts_with("-"))
        break;
    }
    return i;
  }
  static bool sets_environment(const std::vector<Word>& words, std::size_t i) {
    std::vector<Assignment> set;
    read_env(words, i, set);
    return !set.empty();
  }

  // A command sees the environment as it is now, and `own` besides.
  void see(const std::vector<Assignment>& own) {
    has_seen_ = true;
    for (const std::string& name : std::exchange(unseen_, {}))
      if (const std::string* const value = variable(name)) script_.environment[name] = *value;
    for (const Assignment& a : own) {
      script_.environment[a.name] = assigned(a, a.is_more ? variable(a.name) : nullptr);
      if (exported_.contains(a.name)) unseen_.insert(a.name);  // the next one sees that again
    }
  }

  // Where the words for the program begin that a command starts: behind the first "t.py", or
  // "-m module"; what stands in front of it is for the interpreter or a launcher.
  static std::size_t own_words(const std::vector<Word>& words, std::size_t first) {
    for (std::size_t i = first; i < words.size(); ++i) {
      if (words[i].text.ends_with(".py")) return i + 1;
      if (words[i].text == "-m" && i > first) return i + 2;
    }
    return first + 1;
  }
  // "--lr" 2, "-lr" and "-b" 1 where the program's own words have begun, "-0.5" and "lr" 0.
  static std::size_t dashes(const std::string& text, bool is_own) {
    if (text.starts_with("--")) return text.size() > 2 ? 2 : 0;
    const bool is_short = text.size() > 1 && text[0] == '-' &&
                          std::isalpha(static_cast<unsigned char>(text[1])) && !parse_double(text);
    return is_short && is_own ? 1 : 0;
  }

  void read_options(const std::vector<Word>& words, std::size_t first) {
    const std::size_t own = own_words(words, first);
    for (std::size_t i = first + 1; i < words.size(); ++i) {
      const Word& w = words[i];
      const std::size_t sign = w.text.find('='), dash = dashes(w.text, i >= own);
      if (dash > 0) {
        if (sign != std::string::npos) {
          const std::string option = w.text.substr(dash, sign - dash);
          if (waits_for_a_run(w.text))
            script_.passed_over.push_back(option);
          else
            script_.options.push_back(
                {option, w.text.substr(sign + 1), w.line, false, w.is_quoted});
          continue;
        }
        std::string value;
        bool is_known = true;
        const std::size_t name = i;
        while (i + 1 < words.size() && is_value(words[i + 1]) && !sets_environment(words, i + 1)) {
          if (i > name) value += ' ';
          value += words[++i].text;
          is_known = is_known && !waits_for_a_run(words[i].text);
        }
        if (!is_known) {
          script_.passed_over.push_back(w.text.substr(dash));
          continue;
        }
        script_.options.push_back({w.text.substr(dash), std::move(value), w.line, i == name,
                                   i == name + 1 && words[i].is_quoted});
      } else if (sign != std::string::npos && sign > 0 && !w.text.starts_with("-")) {
        // trainer.lr=1e-4, +trainer.lr=1e-4, as programs of Hydra take them.
        std::string name = w.text.substr(0, sign);
        name.erase(0, name.find_first_not_of('+'));
        if (!name.empty() && name.find('.') != std::string::npos && !waits_for_a_run(w.text))
          script_.options.push_back(
              {std::move(name), w.text.substr(sign + 1), w.line, false, w.is_quoted});
      }
    }
  }
  // $(nproc), $((2 * 8)), `date`, a variable that a loop or the caller sets.
  static bool waits_for_a_run(std::string_view text) {
    return text.find_first_of("$`") != std::string_view::npos;
  }
  // "$@" and "$*": what the script is called with, more options as a rule.
  static bool is_callers(std::string_view text) {
    return text.starts_with("$@") || text.starts_with("$*") || text.starts_with("${@") ||
           text.starts_with("${*");
  }
  // "-0.5" is a value, "-v" and "--fp16" are not, nor what another word tells (trainer.lr=1), nor
  // the program that a launcher starts.
  static bool is_value(const Word& w) {
    if (is_callers(w.text)) return false;
    if (w.begins_quoted) return true;
    const std::string_view name = std::string_view(w.text).substr(0, w.text.find('='));
    if (name.size() < w.text.size() && name.find('.') != std::string_view::npos) return false;
    if (w.text.ends_with(".py")) return false;
    return !w.text.starts_with("-") || parse_double(w.text).has_value();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t filled_ = 0;                // characters that variables stood for
  std::vector<Word> words_;               // of the command that is being read
  std::vector<Document> documents_ = {};  // that begin behind the line
  bool is_in_list_ = false;
  std::map<std::string, std::string, std::less<>> variables_;
  std::set<std::string> exported_;
  bool exports_all_ = false;      // behind `set -a`
  std::set<std::string> unseen_;  // exported, and another value than the last command saw
  bool has_seen_ = false;         // whether there was a command that sees any
  ShellScript script_;
};

}  // namespace

ShellScript parse_shell(std::string_view text) { return Reader(text).read(); }

}  // namespace aloft::config_check
