// A file that grows: a log, a curve. Nothing is lost without a word: what a full disk did not take
// stays here and is tried again by the next call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"

namespace aloft {

class AppendFile {
 public:
  // Opens for writing at the end, and creates. EnvironmentError E0603, for a pipe that nobody reads
  // too.
  explicit AppendFile(Path path);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();  // flushes; a failure is then lost: call flush() before

  // Kept here for a while: not more than some kilobytes, and not longer than the first call that
  // comes a second after the last flush. EnvironmentError E0603, as by flush().
  void write(std::string_view bytes);
  // Readers see what was written. EnvironmentError E0603.
  void flush();
  // It survives a power loss as well. EnvironmentError E0603.
  void sync();
  const Path& path() const { return path_; }

 private:
  Path path_;
  int fd_ = -1;
  std::string held_;
  double flushed_;  // when
};

}  // namespace aloft
