#include "base/process.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <sstream>

#include "base/file.h"
#include "base/text.h"

namespace aloft {

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

ProcessName this_process() {
  ProcessName p;
  utsname machine{};
  if (::uname(&machine) == 0) p.host = machine.nodename;
  p.boot = trim(kernel_text("/proc/sys/kernel/random/boot_id"));
  p.pid = ::getpid();
  p.start = start_of_process(p.pid).value_or(0);
  return p;
}

void lower_priority_of_thread() {
  constexpr int kNice = 10;
  // Linux keeps the value by threads. What it refuses costs time alone.
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, kNice));
}

std::optional<std::uint64_t> start_of_process(std::int64_t pid) {
  const std::string text = kernel_text("/proc/" + std::to_string(pid) + "/stat");
  // pid (name) state ...: the name may hold anything, the 20th word behind it is the start.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream words(text.substr(name_end + 1));
  std::string word;
  for (int i = 0; i < 20; ++i)
    if (!(words >> word)) return std::nullopt;
  std::uint64_t start = 0;
  if (std::sscanf(word.c_str(), "%lu", &start) != 1) return std::nullopt;
  return start;
}

bool is_running(std::int64_t pid) {
  return pid > 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

}  // namespace aloft
