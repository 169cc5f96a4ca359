#include "cli/made_folder.h"

namespace aloft::cli {

MadeFolder::MadeFolder(const Path& path) : path_(path.lexically_normal()) {
  if (!path_.has_filename()) path_ = path_.parent_path();
  for (Path at = path_; !at.empty() && !path_exists(at); at = at.parent_path()) first_ = at;
}

void MadeFolder::take_away() const {
  if (!is_new()) return;
  std::error_code failed;
  std::filesystem::remove_all(path_, failed);
  for (Path at = path_; !failed && at != first_;) {
    at = at.parent_path();
    std::filesystem::remove(at, failed);  // an empty one
  }
}

}  // namespace aloft::cli
