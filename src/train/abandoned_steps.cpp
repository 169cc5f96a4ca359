#include "train/abandoned_steps.h"

#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/leftovers.h"
#include "base/log.h"
#include "base/text.h"
#include "observe/probe/step_folder.h"

namespace aloft {

namespace {

// Nothing of what the probe has not written.
std::optional<std::int64_t> step_of(const std::filesystem::directory_entry& entry) {
  std::error_code none;
  if (!entry.is_directory(none) || entry.is_symlink(none) || !probe::is_step_of_dump(entry.path()))
    return std::nullopt;
  return probe::step_of_folder(entry.path().filename().string());
}

}  // namespace

void AbandonedSteps::run_begun(const RunBegun& e, Control&) {
  const Path folder = e.folder / "probe";
  std::error_code none;
  std::vector<Path> abandoned;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (const auto step = step_of(entry); step && *step >= e.step)
      abandoned.push_back(entry.path());
  remove_leftovers(folder);
  if (abandoned.empty()) return;
  std::int64_t removed = 0;
  for (const Path& path : abandoned) {
    std::error_code failed;
    std::filesystem::remove_all(path, failed);
    if (failed)
      log_warning("{} is of a step that this run has not made, and cannot be removed: {}",
                  path.string(), failed.message());
    else
      ++removed;
  }
  if (removed == 0) return;
  log_info("the run goes on behind step {}: the dumps of {} behind it are removed from {}", e.step,
           counted(removed, "step"), folder.string());
}

}  // namespace aloft
