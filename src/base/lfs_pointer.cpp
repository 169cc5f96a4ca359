#include "base/lfs_pointer.h"

namespace aloft {

bool is_lfs_pointer(std::string_view start) {
  return start.starts_with("version https://git-lfs.github.com/spec/v1\n");
}

DataError lfs_pointer(const std::string& file) {
  return DataError("E0616", "the file itself is not there, only a pointer of Git LFS to it")
      .at(file)
      .need("the file that it stands for")
      .advice("git lfs install, then git lfs pull in the folder that was cloned");
}

}  // namespace aloft
