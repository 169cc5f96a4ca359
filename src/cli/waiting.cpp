#include "cli/waiting.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace aloft::cli {
namespace {

constexpr const char* kSpin = "GOMP_SPINCOUNT";
constexpr const char* kPolicy = "OMP_WAIT_POLICY";
// Some 50 us: longer than the stretches between two parallel regions of a step, shorter than what
// waking a thread costs on a processor that another program wants.
constexpr const char* kTurns = "1000";

}  // namespace

void wait_briefly(char** argv) {
  if (std::getenv(kSpin) || std::getenv(kPolicy)) return;
  // By its name, not as /proc/self/exe: that would be the name the system shows.
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed || setenv(kSpin, kTurns, 0) != 0) return;
  execv(self.c_str(), argv);
  unsetenv(kSpin);  // still here: the library has not read it
}

std::string waiting_words() {
  if (const char* turns = std::getenv(kSpin))
    return "spin " + std::string(turns) + " times, then sleep";
  if (const char* policy = std::getenv(kPolicy)) return kPolicy + ("=" + std::string(policy));
  return "wait as OpenMP does by default";
}

}  // namespace aloft::cli
