#include "base/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"

namespace aloft {

bool is_terminal(Output output) { return ::isatty(static_cast<int>(output)) == 1; }

int terminal_width(Output output) {
  winsize size{};
  const bool known = ::ioctl(static_cast<int>(output), TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : 80;
}

namespace {
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The bytes of the first `columns` characters.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (!continues_character(text[at]) && columns-- == 0) break;
  return at;
}
}  // namespace

std::size_t columns_of(std::string_view text) {
  return text.size() -
         static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues_character));
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  for (std::size_t most; (most = bytes_of(text, width)) < text.size();) {
    const std::size_t space = text.rfind(' ', most);
    std::size_t cut = most, next = most;
    if (space != std::string_view::npos && space > 0) {
      cut = space;
      next = space + 1;
    } else if (const auto sign = text.substr(0, most).find_last_of("/.,:;|_-");
               sign != std::string_view::npos && sign > 0) {
      cut = next = sign + 1;
    }
    lines.emplace_back(text.substr(0, cut));
    text.remove_prefix(next);
  }
  lines.emplace_back(text);
  return lines;
}

namespace {
// Where the lines that go on begin: below what stands behind a label and a gap ("  saw   text"), or
// two columns further in than the line.
std::size_t margin_behind(std::string_view line, std::size_t width) {
  const std::size_t margin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", margin);
  const std::size_t text = gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
  return std::min(text < width / 2 ? text : margin + 2, width / 2);
}
}  // namespace

std::string hanging(std::string_view text, std::size_t width) {
  std::string out;
  for (std::string_view line : split(text, '\n')) {
    if (!out.empty() || line.data() != text.data()) out += '\n';
    if (columns_of(line) <= width) {
      out += line;
      continue;
    }
    const std::size_t margin = margin_behind(line, width);
    const std::string_view label = line.substr(0, margin);
    bool is_first = true;
    for (const std::string& piece : wrapped(line.substr(margin), width - margin)) {
      if (is_first)
        out += label;
      else
        out.append(1, '\n').append(margin, ' ');
      out += piece;
      is_first = false;
    }
  }
  return out;
}

std::string fit_for(Output output, std::string_view text) {
  if (!is_terminal(output)) return std::string(text);
  constexpr int kNarrowest = 20;  // below, words do not fit a line
  return hanging(text, static_cast<std::size_t>(std::max(terminal_width(output), kNarrowest)));
}

namespace {
bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }
}  // namespace

std::string in_shell(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  const bool escaped = std::any_of(text.begin(), text.end(), is_control);
  std::string out = escaped ? "$'" : "'";
  for (const char c : text) {
    if (c == '\'')
      out += escaped ? "\\'" : "'\\''";
    else if (escaped && c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (is_control(c))
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "'";
}

std::string harmless(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (is_control(c) && c != '\n' && c != '\t')
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  return out;
}

}  // namespace aloft
