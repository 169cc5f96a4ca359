// A second name for a file that is written: content that belongs under two names lies on the disk
// once.
#pragma once

#include "base/file.h"

namespace aloft {

// From here on `name` has the content of `file`, which lies in the same file system; what had that
// name is replaced, and a reader sees the old content or the new. Where the system makes no link (a
// file system without them, or with too many to one file) it is a copy, which the disk may be too
// full for: EnvironmentError E0603. Nothing is flushed.
void link_file(const Path& file, const Path& name);

}  // namespace aloft
