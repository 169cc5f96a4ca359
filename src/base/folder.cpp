#include "base/folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/error.h"

namespace aloft {

namespace fs = std::filesystem;

std::vector<Path> list_folder(const Path& folder) {
  std::vector<Path> found;
  std::error_code error;
  for (auto at = fs::directory_iterator(system_path(folder), error);
       !error && at != fs::directory_iterator(); at.increment(error))
    found.push_back(at->path());
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    throw EnvironmentError("E0604", "cannot look into a folder")
        .line("folder", folder.string())
        .saw(error.message());
  std::sort(found.begin(), found.end());
  return found;
}

bool has_name(const Path& path) {
  struct stat info {};
  if (::lstat(system_path(path), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw EnvironmentError("E0604", "cannot look into a folder")
      .line("folder", path.parent_path().string())
      .saw(std::generic_category().message(errno));
}

}  // namespace aloft
