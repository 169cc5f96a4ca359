#include "base/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace aloft {

bool is_terminal(Output output) { return ::isatty(static_cast<int>(output)) == 1; }

int terminal_width(Output output) {
  winsize size{};
  const bool known = ::ioctl(static_cast<int>(output), TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : 80;
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
