// What a shell script tells a program: words are cut, quoted and filled in as a shell does, and
// nothing is run; what only a run would say ($(...), loops) stays as it is written.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace aloft::config_check {

struct ShellValue {
  std::string name, value;
  int line = 0;            // from 1
  bool is_flag = false;    // it has no value
  bool is_quoted = false;  // the value is one word, of which a part is quoted: "a b" is no list
};

struct ShellScript {
  // Of commands: --lr 1e-4, --lr=1e-4, trainer.lr=1e-4, and of the program that is started -b 32;
  // with variables as they were there.
  std::vector<ShellValue> options;
  std::vector<std::string> passed_over;  // names of options whose value only a run would know
  // What commands see of the environment, the last of them where they see it otherwise: what is
  // exported in front of them (`set -a` exports all that is assigned), `NAME=VALUE command`, `env
  // NAME=VALUE command`. Of a script without such a command all that it exports.
  std::map<std::string, std::string> environment;
};

// For any bytes.
ShellScript parse_shell(std::string_view text);

}  // namespace aloft::config_check
