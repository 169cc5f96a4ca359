// By libedit, which keeps the line, its history and what is shown of it. The bytes it edits by come
// from here: Ctrl-C has to reach a line that is waited for, a paste has to be one text, and what a
// key sends that libedit does not know must not stand in a message.
#include "cli/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <exception>
#include <string_view>

#include "base/error.h"

namespace aloft::cli {
namespace {

constexpr int kHistory = 1000;  // lines
constexpr std::string_view kPasteBegins = "\x1b[200~", kPasteEnds = "\x1b[201~";

// What a key sends, and what it does. Arrows are known to libedit by themselves.
struct Key {
  std::string_view bytes;
  const wchar_t* written;  // as libedit reads it
  const wchar_t* does;
};
constexpr Key kKeys[] = {
    {"\x1b[H", L"\\e[H", L"ed-move-to-beg"},        {"\x1b[F", L"\\e[F", L"ed-move-to-end"},
    {"\x1bOH", L"\\eOH", L"ed-move-to-beg"},        {"\x1bOF", L"\\eOF", L"ed-move-to-end"},
    {"\x1b[1~", L"\\e[1~", L"ed-move-to-beg"},      {"\x1b[4~", L"\\e[4~", L"ed-move-to-end"},
    {"\x1b[3~", L"\\e[3~", L"ed-delete-next-char"}, {"\x1b[1;5D", L"\\e[1;5D", L"ed-prev-word"},
    {"\x1b[1;5C", L"\\e[1;5C", L"em-next-word"},    {"\x17", L"^W", L"ed-delete-prev-word"},
    {"\x12", L"^R", L"em-inc-search-prev"},         {kPasteBegins, L"\\e[200~", L"paste"},
};
constexpr std::string_view kArrows[] = {"\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D",
                                        "\x1bOA", "\x1bOB", "\x1bOC", "\x1bOD"};

bool is_known(std::string_view sequence) {
  return std::ranges::find(kKeys, sequence, &Key::bytes) != std::end(kKeys) ||
         std::ranges::find(kArrows, sequence) != std::end(kArrows);
}

// The bytes of a key's sequence that `held` begins with: ESC [ ... letter or ~, or ESC O letter. 0
// where it begins with none, nothing where its end has not come.
std::optional<std::size_t> sequence_at(std::string_view held) {
  if (held.size() < 2 || held[0] != '\x1b' || (held[1] != '[' && held[1] != 'O')) return 0;
  const std::size_t first = 2;
  if (held[1] == 'O') return held.size() > first ? std::optional(first + 1) : std::nullopt;
  for (std::size_t i = first; i < held.size(); ++i) {
    if (held[i] >= '@' && held[i] <= '~') return i + 1;
    if (held[i] < ' ' || held[i] > '?') return i;  // cut off by something else
  }
  return std::nullopt;
}

std::string utf8(std::wstring_view text) {
  std::string out;
  for (const wchar_t c : text) {
    char bytes[MB_LEN_MAX];
    std::mbstate_t state{};
    const std::size_t size = std::wcrtomb(bytes, c, &state);
    if (size != static_cast<std::size_t>(-1)) out.append(bytes, size);
  }
  return out;
}

// The character that bytes of UTF-8 begin with, and how many it has. Nothing where its end has not
// come; the sign for what is none where they are no character.
struct Read {
  wchar_t character;
  std::size_t size;
};
std::optional<Read> character_at(std::string_view bytes) {
  Read read{L'\0', 1};
  std::mbstate_t state{};
  const std::size_t size = std::mbrtowc(&read.character, bytes.data(), bytes.size(), &state);
  if (size == static_cast<std::size_t>(-2)) return std::nullopt;
  if (size == static_cast<std::size_t>(-1)) return Read{L'\uFFFD', 1};
  read.size = std::max<std::size_t>(size, 1);
  return read;
}

// A paste as it is said: ends of lines of one kind, and no other control characters than tabs.
std::wstring pasted_text(std::string_view bytes) {
  std::wstring text;
  while (!bytes.empty()) {
    const Read read = character_at(bytes).value_or(Read{L'\uFFFD', bytes.size()});
    const bool is_end = read.character == L'\r' || read.character == L'\n';
    if (is_end)
      text += L'\n';
    else if (read.character == L'\t' || (read.character >= L' ' && read.character != L'\x7f'))
      text += read.character;
    bytes.remove_prefix(read.size);
    if (read.character == L'\r' && bytes.starts_with('\n')) bytes.remove_prefix(1);
  }
  return text;
}

class LineEditor : public SaidLines {
 public:
  explicit LineEditor(int terminal) {
    // libedit asks the locale what a character is, and how wide; this one is in every C library.
    std::setlocale(LC_CTYPE, "C.UTF-8");
    const char* kind = std::getenv("TERM");
    is_plain_ = !kind || std::strcmp(kind, "dumb") == 0 || *kind == '\0';
    shown_ = opened(::dup(terminal), "w");
    said_ = opened(::dup(STDIN_FILENO), "r");
    lost_ = opened(::open("/dev/null", O_WRONLY | O_CLOEXEC), "w");  // what it says of the terminal
    edit_ =
        el_init_fd("aloft", said_, shown_, lost_, STDIN_FILENO, ::fileno(shown_), ::fileno(lost_));
    history_ = history_winit();
    if (!edit_ || !history_) throw EnvironmentError("E0606", "a line cannot be edited").at("stdin");
    set_up();
  }
  ~LineEditor() override {
    if (history_) history_wend(history_);
    if (edit_) el_end(edit_);
    for (std::FILE* stream : {said_, shown_, lost_})
      if (stream) std::fclose(stream);
  }

  std::optional<std::string> next(bool& interrupted) override {
    is_interrupted_ = is_at_end_ = false;
    el_resize(edit_);                 // the terminal may have another size by now
    el_wset(edit_, EL_PREP_TERM, 1);  // before "> " stands there, and somebody types
    let_pastes_be_told(true);
    int count = 0;
    const wchar_t* line = el_wgets(edit_, &count);
    let_pastes_be_told(false);
    interrupted = is_interrupted_;
    if (failed_) std::rethrow_exception(failed_);
    if (interrupted || !line || count < 1) {
      show("\n");
      return interrupted ? std::optional<std::string>("") : std::nullopt;
    }
    std::wstring said(line, static_cast<std::size_t>(count));
    if (said.ends_with(L'\n')) said.pop_back();
    HistEventW event{};
    if (!said.empty()) history_w(history_, &event, H_ENTER, said.c_str());
    return utf8(said);
  }

 private:
  static std::FILE* opened(int fd, const char* mode) {
    std::FILE* stream = fd < 0 ? nullptr : ::fdopen(fd, mode);
    if (stream) return stream;
    throw EnvironmentError("E0606", "the terminal cannot be opened").saw(std::strerror(errno));
  }
  static LineEditor& of(EditLine* edit) {
    void* self = nullptr;
    el_wget(edit, EL_CLIENTDATA, &self);
    return *static_cast<LineEditor*>(self);
  }
  static wchar_t* prompt(EditLine*) {
    static wchar_t words[] = L"> ";
    return words;
  }
  static int read_key(EditLine* edit, wchar_t* key) { return of(edit).key(*key); }
  static unsigned char paste_key(EditLine* edit, wint_t) { return of(edit).paste(); }

  void set_up() {
    HistEventW event{};
    history_w(history_, &event, H_SETSIZE, kHistory);
    el_wset(edit_, EL_CLIENTDATA, this);
    el_wset(edit_, EL_EDITOR, L"emacs");
    el_wset(edit_, EL_PROMPT, prompt);
    el_wset(edit_, EL_HIST, history_w, history_);
    el_wset(edit_, EL_GETCFN, read_key);
    // Neither end is made the other, or "\r\n" would come as two.
    el_wset(edit_, EL_SETTY, L"-d", L"-icrnl", L"-inlcr", nullptr);
    el_wset(edit_, EL_ADDFN, L"paste", L"the text that a terminal pastes", paste_key);
    for (const Key& key : kKeys) el_wset(edit_, EL_BIND, key.written, key.does, nullptr);
  }

  void show(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), shown_);
    std::fflush(shown_);
  }

  // A terminal that can marks what it pastes. Only while a line is edited: whoever runs behind us,
  // or meanwhile, has not asked for the marks.
  void let_pastes_be_told(bool yes) {
    if (!is_plain_) show(yes ? "\x1b[?2004h" : "\x1b[?2004l");
  }

  // More bytes in held_. Whether there are; no exception may pass through libedit.
  bool read_more() {
    try {
      char bytes[4096];
      const std::optional<std::size_t> count = read_said(bytes, sizeof bytes);
      is_interrupted_ = !count;
      is_at_end_ = count && *count == 0;
      held_.append(bytes, count.value_or(0));
      if (is_interrupted_) {
        held_.clear();
        known_ = 0;
      }
    } catch (...) {
      failed_ = std::current_exception();
    }
    return !is_interrupted_ && !is_at_end_ && !failed_;
  }

  // The next character for libedit: 1; else 0 at the end of stdin, -1 where there is no line.
  int key(wchar_t& out) {
    for (;;) {
      // The escape key is alone where nothing came with it: a terminal sends a sequence at once.
      const auto sequence = known_ > 0 ? std::optional<std::size_t>(0) : sequence_at(held_);
      if (sequence && *sequence > 0) {
        if (is_known(std::string_view(held_).substr(0, *sequence)))
          known_ = *sequence;
        else
          held_.erase(0, *sequence);
        continue;
      }
      if (sequence && !held_.empty()) {
        if (const std::optional<Read> read = character_at(held_)) {
          held_.erase(0, read->size);
          known_ -= std::min(known_, read->size);
          out = read->character;
          return 1;
        }
      }
      if (!read_more()) return is_at_end_ ? 0 : -1;
    }
  }

  unsigned char paste() {
    std::size_t end;
    while ((end = held_.find(kPasteEnds)) == std::string::npos)
      if (!read_more()) return CC_EOF;
    const std::wstring text = pasted_text(std::string_view(held_).substr(0, end));
    held_.erase(0, end + kPasteEnds.size());
    if (text.empty()) return CC_NORM;
    return el_winsertstr(edit_, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  std::FILE *said_ = nullptr, *shown_ = nullptr, *lost_ = nullptr;
  EditLine* edit_ = nullptr;
  HistoryW* history_ = nullptr;
  bool is_plain_ = false;  // it knows no commands
  std::string held_;       // bytes that have come and were not handed on
  std::size_t known_ = 0;  // of them, those of a sequence that libedit knows
  bool is_interrupted_ = false, is_at_end_ = false;
  std::exception_ptr failed_;
};

}  // namespace

std::unique_ptr<SaidLines> edited_lines(int terminal) {
  return std::make_unique<LineEditor>(terminal);
}

}  // namespace aloft::cli
