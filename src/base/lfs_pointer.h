// Pointers of Git LFS: what a clone without `git lfs` has in place of large files.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace aloft {

// Whether a file that begins so is one.
bool is_lfs_pointer(std::string_view start);
// DataError E0616.
DataError lfs_pointer(const std::string& file);

}  // namespace aloft
