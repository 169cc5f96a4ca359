#include "cli/machine.h"

#include <fmt/format.h>

#include <fstream>
#include <thread>

#include "base/text.h"

namespace aloft::cli {

std::string machine_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string name = "unknown processor";
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) {
      name = std::string(trim(line.substr(line.find(':') + 1)));
      break;
    }
  return fmt::format("{}, {} threads", name, std::thread::hardware_concurrency());
}

}  // namespace aloft::cli
