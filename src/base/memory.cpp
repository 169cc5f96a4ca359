#include "base/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace aloft {
namespace {

// The number behind "NAME:" or "NAME " at the start of a line.
std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view name) {
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    const std::string_view rest = trim(line.substr(name.size()));
    if (const auto n = parse_int(rest.substr(0, rest.find(' '))); n && *n >= 0)
      return static_cast<std::uint64_t>(*n);
  }
  return std::nullopt;
}

// The same of a file of the kernel; without a name, the number that a line begins with.
std::optional<std::uint64_t> number_in(const Path& path, std::string_view name = "") {
  return number_behind(kernel_text(path), name);
}

// The files that a version of control groups has.
struct GroupFiles {
  const char *mount, *limit, *used, *cached;
};
constexpr GroupFiles kVersion2{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};
constexpr GroupFiles kVersion1{"sys/fs/cgroup/memory", "memory.limit_in_bytes",
                               "memory.usage_in_bytes", "total_inactive_file "};

// The limits of a group and of all above it hold together.
void apply_group(MachineMemory& memory, const Path& root, const GroupFiles& files,
                 std::string_view group) {
  Path at = Path(group).relative_path();
  for (;;) {
    const Path folder = root / files.mount / at;
    if (const auto limit = number_in(folder / files.limit)) {
      if (*limit < memory.total) {
        memory.total = *limit;
        memory.limited_by = "the container's limit (cgroup)";
      }
      const std::uint64_t used = number_in(folder / files.used).value_or(0);
      const std::uint64_t cached = number_in(folder / "memory.stat", files.cached).value_or(0);
      const std::uint64_t held = used - std::min(used, cached);
      memory.available = std::min(memory.available, *limit - std::min(*limit, held));
    }
    if (at.empty()) return;
    at = at.parent_path();
  }
}

std::string size_text(double bytes) {
  constexpr double kMost = 1e18;
  return human_bytes(static_cast<std::uint64_t>(std::clamp(bytes, 0.0, kMost)));
}

}  // namespace

MachineMemory machine_memory(const Path& root) {
  constexpr std::uint64_t kUnit = 1024;
  const std::string info = kernel_text(root / "proc/meminfo");
  const auto total = number_behind(info, "MemTotal:");
  if (!total) return {};
  MachineMemory memory;
  memory.total = (*total + number_behind(info, "SwapTotal:").value_or(0)) * kUnit;
  memory.available = (number_behind(info, "MemAvailable:").value_or(*total) +
                      number_behind(info, "SwapFree:").value_or(0)) *
                     kUnit;
  memory.limited_by = "the machine";
  const std::string groups = kernel_text(root / "proc/self/cgroup");
  for (std::string_view line : split(groups, '\n')) {
    const auto parts = split(line, ':');
    if (parts.size() < 3) continue;
    const std::string_view group = line.substr(parts[0].size() + parts[1].size() + 2);
    if (parts[1].empty()) apply_group(memory, root, kVersion2, group);
    for (std::string_view controller : split(parts[1], ','))
      if (controller == "memory") apply_group(memory, root, kVersion1, group);
  }
  return memory;
}

MachineMemory process_memory() {
  MachineMemory memory = machine_memory();
  const std::string sizes = kernel_text("/proc/self/status");
  constexpr std::uint64_t kUnit = 1024;
  for (const auto& [resource, name, held] :
       {std::tuple{RLIMIT_AS, "ulimit -v", "VmSize:"}, {RLIMIT_DATA, "ulimit -d", "VmData:"}}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    const std::uint64_t used = number_behind(sizes, held).value_or(0) * kUnit;
    const std::uint64_t left = limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used);
    memory.available = std::min(memory.available, left);
    if (left >= memory.total) continue;
    memory.total = left;  // what the process has mapped so far stays mapped
    memory.limited_by = std::string("what `") + name + "` leaves";
  }
  return memory;
}

void need_memory(double bytes, std::string_view what, std::string_view advice) {
  const MachineMemory memory = process_memory();
  if (memory.total == 0 || bytes <= static_cast<double>(memory.total)) return;
  throw EnvironmentError("E0401", "not enough memory")
      .need(fmt::format("{} for {}", size_text(bytes), what))
      .saw(fmt::format("{} in all, {} of it free: {}", human_bytes(memory.total),
                       human_bytes(memory.available), memory.limited_by))
      .advice(advice);
}

void warn_of_memory(double bytes, std::string_view what, std::string_view advice) {
  const MachineMemory memory = process_memory();
  if (memory.total == 0 || bytes <= static_cast<double>(memory.available)) return;
  log_warning("{} needs {}, and {} are free now ({}): the system may end this run; try {}", what,
              size_text(bytes), human_bytes(memory.available), memory.limited_by, advice);
}

}  // namespace aloft
