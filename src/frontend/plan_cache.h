// Compiled programs kept in a folder, so that a second start runs no pass (docs/plan-cache.md). An
// entry that is damaged, cut short, of another build or of anything else than what is asked for is
// as good as none; where the folder cannot be written, nothing is kept. Neither is ever an error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "frontend/compiled_program.h"
#include "runtime/device.h"

namespace aloft {

// What decides about a compiled program.
struct CompileSubject {
  const Graph& traced;  // with the taps that are asked for
  const Device& device;
  int threads = 1;
  int input_homes = 1;
  const PipelineOptions& options;
  const std::map<std::string, std::string>& choices;
};

// 32 hexadecimal digits of everything in it, and of the code that this process runs; empty where
// that code is not known, or somebody looks at each pass: then nothing is kept or found.
std::string cache_key(const CompileSubject& subject);

class PlanCache {
 public:
  static constexpr std::uint64_t kUsualBytes = std::uint64_t{256} << 20;

  // Where entries of more than `most_bytes` bytes lie, those go that were used longest ago.
  explicit PlanCache(Path folder, std::uint64_t most_bytes = kUsualBytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  // The folder that the environment variable ALOFT_PLAN_CACHE names, or else plans/ in
  // default_cache(); nothing where it is "off".
  static std::optional<PlanCache> of_environment();

  std::optional<CompiledProgram> find(const std::string& key) const;
  void keep(const std::string& key, const CompiledProgram& program, int threads) const;
  const Path& folder() const { return folder_; }
  Path path_of(const std::string& key) const { return folder_ / (key + ".plan"); }

 private:
  void remove_oldest() const;

  Path folder_;
  std::uint64_t most_bytes_;
};

// An entry: a line with the format and the key, a line with the hash of what follows, the text.
std::string entry_text(const std::string& key, std::string_view program);
// The text in it; nothing where it is no entry of this key, or not whole.
std::optional<std::string_view> program_in(std::string_view entry, std::string_view key);

}  // namespace aloft
