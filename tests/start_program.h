// A program in a process of its own, which has drawn, locked and mapped nothing yet.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "base/file.h"

namespace aloft {

// Starts words[0] with its arguments and its stdout in `out`; the process, for waitpid(). It exits
// with 99 where that cannot be.
inline pid_t start_program(const std::vector<std::string>& words, const Path& out = "/dev/null") {
  std::vector<char*> arguments;
  for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);  // which a shell's background jobs ignore
    if (std::freopen(out.c_str(), "w", stdout)) execv(arguments[0], arguments.data());
    _exit(99);
  }
  return child;
}

}  // namespace aloft
