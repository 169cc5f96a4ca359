// What is said to a model: lines of a pipe or a file, or lines that somebody edits at a terminal.
#pragma once

#include <csignal>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace aloft::cli {

// While it lives, Ctrl-C asks for the end of an answer, or of a line that is being written, and
// ends nothing else. One that was ignored before stays ignored. There is one at a time.
class StopKey {
 public:
  StopKey();
  ~StopKey();
  StopKey(const StopKey&) = delete;
  StopKey& operator=(const StopKey&) = delete;
  // Whether it was pressed since the last call.
  static bool take();
  static bool is_pressed();

 private:
  struct sigaction before_ {};
};

// Waits for bytes of stdin; how many there are, 0 at its end, nothing where Ctrl-C came first (a
// StopKey lives). EnvironmentError E0606 where stdin is not given: that is no end, and what is
// asked behind it would never be answered.
std::optional<std::size_t> read_said(char* bytes, std::size_t most);

class SaidLines {
 public:
  SaidLines() = default;
  virtual ~SaidLines() = default;
  SaidLines(const SaidLines&) = delete;
  SaidLines& operator=(const SaidLines&) = delete;
  // The next one without its end; nothing behind the last one. `interrupted` where Ctrl-C came
  // first: what was written of the line is forgotten. The errors of read_said().
  virtual std::optional<std::string> next(bool& interrupted) = 0;
};

// Of stdin. At a terminal each is asked for with "> " and edited (line_editor.h).
std::unique_ptr<SaidLines> said_lines();

}  // namespace aloft::cli
