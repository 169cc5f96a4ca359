// aloft doctor
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "backends/cpu/isa.h"
#include "backends/cpu/measure.h"
#include "base/cache_folder.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/device_features.h"
#include "cli/machine.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "cli/waiting.h"
#include "frontend/plan_cache.h"
#include "runtime/current_device.h"
#include "runtime/threads.h"

namespace aloft::cli {
namespace {

struct Finding {
  std::string what, state, saw, advice;  // state: ok, warn, fail
};

Finding processor() {
  const cpu::CpuFeatures& f = cpu::cpu_features();
  const bool fast = f.avx512_bf16 || f.amx_bf16;
  return {"instruction sets", fast ? "ok" : "warn", cpu::describe(f),
          fast ? "" : "no bf16 products in hardware: O0 may be as fast as O2 (aloft devices)"};
}

Finding threads() {
  const int pool = host_threads().count();
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const std::string saw = fmt::format("{}: {} threads on {} processors, {}", host_threads().name(),
                                      pool, cores, waiting_words());
  if (pool > cores)
    return {"threads", "warn", saw,
            "more threads than processors slow each other: OMP_NUM_THREADS"};
  if (pool < cores)
    return {"threads", "warn", saw, "OMP_NUM_THREADS leaves processors idle; unset it to use all"};
  return {"threads", "ok", saw, ""};
}

Finding load() {
  const double load = load_a_processor();
  if (load < 0) return {"load", "warn", "unknown", "the system does not say"};
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  const bool busy = load > kBusy;
  return {
      "load", busy ? "warn" : "ok", fmt::format("{:.1f} on {:.0f} processors", load * cores, cores),
      busy ? "other programs run: measured rates will be lower, and threads lose time waiting for "
             "one another; fewer of them (OMP_NUM_THREADS) may be faster"
           : ""};
}

Finding library() { return {"oneDNN", "ok", cpu::library_version(), ""}; }

// Whether files can be written there; `otherwise`: what it means where they cannot.
Finding writable(const std::string& what, const Path& folder, const std::string& otherwise,
                 const std::string& advice) {
  try {
    make_folder(folder);
    const Path probe = folder / fmt::format(".doctor-{}", getpid());
    write_file_atomic(probe, std::string_view("aloft"));
    std::filesystem::remove(probe);
  } catch (const Error& e) {
    return {what, otherwise, e.headline() + ": " + folder.string(), advice};
  }
  return {what, "ok", folder.string(), ""};
}

Finding cache() {
  return writable("cache folder", default_cache(), "fail",
                  "set XDG_CACHE_HOME, or data.cache in the recipe");
}

Finding plan_cache() {
  const auto cache = PlanCache::of_environment();
  if (!cache) return {"plan cache", "ok", "off, as ALOFT_PLAN_CACHE says", ""};
  return writable("plan cache", cache->folder(), "warn",
                  "programs are compiled at each start; set ALOFT_PLAN_CACHE to a folder that can "
                  "be written, or to off");
}

Finding disk(const std::string& what, const Path& folder) {
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error) return {what, "warn", error.message() + ": " + folder.string(), "check the folder"};
  const bool tight = space.available < (std::uint64_t{1} << 30);
  return {what, tight ? "warn" : "ok", human_bytes(space.available) + " free",
          tight ? "checkpoints need three times the model's fp32 size each" : ""};
}

Finding memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("MemAvailable:", 0) == 0) {
      const std::uint64_t bytes = std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
      const bool tight = bytes < (std::uint64_t{1} << 30);
      return {"memory", tight ? "warn" : "ok", human_bytes(bytes) + " available",
              tight ? "`aloft explain plan RECIPE` says what a run needs, to the byte" : ""};
    }
  return {"memory", "warn", "unknown", "/proc/meminfo cannot be read"};
}

Finding huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(file, text);
  const auto from = text.find('['), to = text.find(']');
  if (from == std::string::npos || to == std::string::npos)
    return {"huge pages", "warn", "unknown", "large arenas are faster on huge pages"};
  const std::string mode = text.substr(from + 1, to - from - 1);
  const bool off = mode == "never";
  return {"huge pages", off ? "warn" : "ok", mode,
          off ? "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)" : ""};
}

Finding device() {
  std::vector<std::string> words;
  for (const auto& [what, how] : features_text(current_device()))
    words.push_back(what == "device" ? how : what + " " + how);
  return {"device", "ok", join(words, "; "), ""};
}

// The table is a result, and read by who asks for it; a status that is no success says why itself.
void refuse_failed(const std::vector<Finding>& findings) {
  EnvironmentError e("E0407", "a check has failed");
  bool any = false;
  for (const Finding& f : findings) {
    if (f.state != "fail") continue;
    any = true;
    e.add_line("saw", f.what + ": " + f.saw);
    e.add_line("try", f.advice);
  }
  if (any) throw e;
}

ExitCode doctor(bool as_json) {
  const std::vector<Finding> findings{{"aloft", "ok", ALOFT_VERSION, ""},
                                      processor(),
                                      threads(),
                                      load(),
                                      library(),
                                      device(),
                                      memory(),
                                      huge_pages(),
                                      cache(),
                                      plan_cache(),
                                      disk("disk of the cache", default_cache()),
                                      disk("disk here", std::filesystem::current_path())};
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows{{"check", "state", "seen", "advice"}};
  for (const Finding& f : findings) {
    list.push_back({{"check", f.what}, {"state", f.state}, {"saw", f.saw}, {"advice", f.advice}});
    rows.push_back({f.what, f.state, f.saw, f.advice});
  }
  if (as_json)
    print_result("{}\n", json_text(list, 2));
  else
    print_result("{}", table(rows));
  flush_results();
  refuse_failed(findings);
  return ExitCode::Ok;
}

}  // namespace

Action doctor_verb(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  add_device(app);
  add_json(app, *json, "a list of objects: check, state, saw, advice");
  return [json] { return doctor(*json); };
}

}  // namespace aloft::cli
