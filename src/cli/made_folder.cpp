#include "cli/made_folder.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/json.h"

namespace aloft::cli {

namespace {

// msprobe has a config.json, too.
bool is_of_model(const Path& config) {
  const nlohmann::json json = parse_json(read_file(config));
  return !json.is_object() || !json.contains("dump_path");
}

[[noreturn]] void refuse(const Path& results, const Path& there) {
  throw UserError("E0820", "the folder of the results is that of a model or of a run")
      .at(results.string())
      .saw(there.string())
      .need("a folder of their own")
      .advice("--out compared, or another one");
}

}  // namespace

void refuse_folder_of_others(const Path& results) {
  for (const char* file : {"config.json", "model.safetensors", "model.safetensors.index.json",
                           "run.json", "manifest.json"})
    if (path_exists(results / file) &&
        (file != std::string_view("config.json") || is_of_model(results / file)))
      refuse(results, file);
  std::error_code none;
  Path at = std::filesystem::absolute(results, none).lexically_normal();
  if (!at.has_filename()) at = at.parent_path();
  if ((at.filename() == "checkpoints" || at.filename() == "probe") &&
      path_exists(at.parent_path() / "run.json"))
    refuse(results, at.parent_path() / "run.json");
}

MadeFolder::MadeFolder(const Path& path) : path_(path.lexically_normal()) {
  refuse_folder_of_others(path);
  if (!path_.has_filename()) path_ = path_.parent_path();
  for (Path at = path_; !at.empty() && !path_exists(at); at = at.parent_path()) first_ = at;
  make_folder(path_);
  lock_ = std::make_unique<FolderLock>(path_ / "results.lock");
}

MadeFolder::~MadeFolder() {
  lock_.reset();
  if (first_.empty()) return;
  for (Path at = path_;; at = at.parent_path()) {
    std::error_code failed;
    std::filesystem::remove(at, failed);  // an empty one
    if (at == first_ || path_exists(at)) return;
  }
}

void MadeFolder::take_away() {
  if (first_.empty()) return;
  std::error_code failed;
  std::filesystem::remove_all(path_, failed);
}

}  // namespace aloft::cli
