#include "cli/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
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

double load_a_processor() {
  double averages[1] = {0};
  if (getloadavg(averages, 1) != 1) return -1;
  return averages[0] / std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace aloft::cli
