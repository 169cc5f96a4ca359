// The Python interpreter that has other systems' packages, for tests that ask them; JUDGE_PYTHON
// names it (tools/judge/README.md).
#pragma once

#include <cstdlib>
#include <string>

#include "base/file.h"

namespace aloft {

// Empty where there is none or it lacks `package`.
inline std::string judge_python_with(const std::string& package) {
  const char* python = std::getenv("JUDGE_PYTHON");
  if (!python) return "";
  const std::string probe = std::string(python) + " -c 'import " + package + "' 2> /dev/null";
  return std::system(probe.c_str()) == 0 ? python : "";
}

// Runs `script` with the interpreter and one argument; what it said where it failed, else nothing.
inline std::string complaint_of(const std::string& python, const Path& script,
                                const std::string& argument) {
  const Path log = script.parent_path() / "log";
  const std::string command =
      python + " " + script.string() + " " + argument + " > " + log.string() + " 2>&1";
  const bool failed = std::system(command.c_str()) != 0;
  return failed ? "it failed: " + read_file(log) : "";
}

}  // namespace aloft
