// What a shell script tells a program: words are cut, quoted and filled in as a shell does, and
// nothing is run; what only a run would say ($(...), loops) stays as it is written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aloft::config_check {

struct ShellValue {
  std::string name, value;  // an option that has no value is "true"
  int line = 0;             // from 1
};

struct ShellScript {
  std::vector<ShellValue> options;  // of commands: --lr 1e-4, --lr=1e-4, trainer.lr=1e-4
  std::vector<ShellValue> exports;  // variables that commands get
};

// For any bytes.
ShellScript parse_shell(std::string_view text);

}  // namespace aloft::config_check
