#include "cli/machine.h"

#include <fmt/format.h>
#include <sys/resource.h>

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

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace aloft::cli
