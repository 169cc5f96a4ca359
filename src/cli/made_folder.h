// A folder that a verb makes for its results, which is taken away again where the verb is refused.
#pragma once

#include "base/file.h"

namespace aloft::cli {

class MadeFolder {
 public:
  // Remembers what is there before anything is made. EnvironmentError E0606.
  explicit MadeFolder(const Path& path);
  bool is_new() const { return !first_.empty(); }
  // Removes the folder with what was written into it, and the folders around it that are empty, as
  // far as they were not there. What cannot be removed stays.
  void take_away() const;

 private:
  Path path_, first_;  // the outermost that was not there; empty: all of them were
};

}  // namespace aloft::cli
