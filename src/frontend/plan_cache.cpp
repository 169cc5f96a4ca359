#include "frontend/plan_cache.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "base/build_id.h"
#include "base/cache_folder.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"

namespace aloft {
namespace {

constexpr std::string_view kFormat = "aloft compiled program 1 ";

std::string device_text(const Device& device) {
  const Features& f = device.features();
  const Capability& c = f.capability;
  std::string text = device.name() + "\n" + std::string(device.backend().name()) + "\n" + f.variant;
  for (const bool can : {c.stores_bf16, c.stores_f16, c.computes_bf16, c.computes_f16,
                         f.is_asynchronous, f.shares_host_memory})
    text += can ? " 1" : " 0";
  text += " " + std::to_string(f.streams) + " " + std::to_string(f.alignment);
  for (const auto& s : f.spaces)
    text += " " + std::to_string(static_cast<int>(s.space)) + ":" + std::to_string(s.bytes);
  return text;
}

// The text numbers nodes as they run; passes see their own numbers, too.
std::string numbers_text(const Graph& g) {
  std::string text;
  std::uint32_t next = 0;
  for (std::uint32_t n : g.order()) {
    if (n != next) text += std::to_string(n) + ",";
    next = n + 1;
  }
  return text;
}

}  // namespace

namespace {
// With its length in front, so that no text is taken for two.
std::string part(std::string_view text) {
  return std::to_string(text.size()) + ":" + std::string(text) + "\n";
}
}  // namespace

std::string cache_key(const CompileSubject& s) {
  if (s.options.dump || build_id().empty()) return {};
  std::string text = part(build_id()) + part(device_text(s.device)) +
                     part(std::to_string(s.threads) + " " + std::to_string(s.input_homes));
  for (const std::string& pass : s.options.skip) text += "skip " + part(pass);
  for (const std::string& pass : s.options.also) text += "also " + part(pass);
  for (const auto& [name, value] : s.choices) text += "choice " + part(name) + part(value);
  text += part(numbers_text(s.traced)) + print(s.traced);
  return hex16(hash64(text)) + hex16(hash64(text, 1));
}

std::string entry_text(const std::string& key, std::string_view program) {
  return std::string(kFormat) + key + "\n" + hex16(hash64(program)) + "\n" + std::string(program);
}

std::optional<std::string_view> program_in(std::string_view entry, std::string_view key) {
  for (const std::string_view part : {kFormat, key, std::string_view("\n")}) {
    if (!entry.starts_with(part)) return std::nullopt;
    entry.remove_prefix(part.size());
  }
  const auto hash = parse_hex16(entry.substr(0, 16));
  if (!hash || entry.size() < 17 || entry[16] != '\n') return std::nullopt;
  entry.remove_prefix(17);
  if (hash64(entry) != *hash) return std::nullopt;
  return entry;
}

std::optional<PlanCache> PlanCache::of_environment() {
  const char* text = std::getenv("ALOFT_PLAN_CACHE");
  if (!text || !*text) return PlanCache(default_cache() / "plans");
  const std::string word = lower(text);
  if (word == "off" || word == "no" || word == "0") return std::nullopt;
  return PlanCache(Path(text));
}

std::optional<CompiledProgram> PlanCache::find(const std::string& key) const {
  const Path path = path_of(key);
  try {
    if (!is_file(path)) return std::nullopt;  // of a device there may be no end
    const std::string entry = read_file(path, most_bytes_);
    const auto text = program_in(entry, key);
    auto program = text ? compiled_from(*text) : std::nullopt;
    if (!program) {
      log_debug("{} is not whole: compiling again", path.string());
      return std::nullopt;
    }
    std::error_code ignored;  // used now: the oldest go first
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), ignored);
    return program;
  } catch (const Error& e) {
    log_debug("{} cannot be read: {}", path.string(), e.headline());
    return std::nullopt;
  }
}

void PlanCache::keep(const std::string& key, const CompiledProgram& program, int threads) const {
  const std::string text = text_of(program, threads);
  if (text.empty() || text.size() > most_bytes_ / 2) return;
  try {
    make_folder(folder_);
    AtomicFile file(path_of(key));
    file.write(entry_text(key, text));
    file.commit_unflushed();
    remove_oldest();
  } catch (const Error& e) {
    static std::atomic<bool> is_said = false;  // once, where somebody has named the folder
    if (std::getenv("ALOFT_PLAN_CACHE") && !is_said.exchange(true))
      log_warning("compiled programs are not kept in {}, which ALOFT_PLAN_CACHE names: {}",
                  folder_.string(), e.headline());
    else
      log_debug("a compiled program is not kept in {}: {}", folder_.string(), e.headline());
  }
}

namespace {
struct Entry {
  std::filesystem::file_time_type used;
  std::uint64_t bytes;
  Path path;
};

// Entries, and what a process that was killed left half written; nothing of others.
bool is_ours(const Path& path) {
  std::string name = path.filename().string();
  if (name.starts_with(".") && name.ends_with(".tmp")) name.erase(0, 1);
  constexpr std::size_t kDigits = 32;
  const std::string_view end = std::string_view(name).substr(std::min(kDigits, name.size()));
  return name.find_first_not_of("0123456789abcdef") == kDigits &&
         (end == ".plan" || (end.starts_with(".plan.") && end.ends_with(".tmp")));
}
}  // namespace

void PlanCache::remove_oldest() const {
  std::vector<Entry> entries;
  std::uint64_t sum = 0;
  for (const Path& path : list_folder(folder_)) {
    if (!is_ours(path)) continue;
    std::error_code gone;  // another process may have removed it
    const auto used = std::filesystem::last_write_time(path, gone);
    const std::uint64_t bytes = gone ? 0 : std::filesystem::file_size(path, gone);
    if (gone) continue;
    entries.push_back({used, bytes, path});
    sum += bytes;
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& e : entries) {
    if (sum <= most_bytes_) break;
    std::error_code gone;
    std::filesystem::remove(e.path, gone);
    sum -= e.bytes;
  }
}

}  // namespace aloft
