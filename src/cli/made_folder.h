// A folder that a verb makes for its results, which is taken away again where the verb is refused.
#pragma once

#include <memory>

#include "base/file.h"
#include "base/folder_lock.h"

namespace aloft::cli {

// UserError E0820 where it is a model's folder, a run's, or its checkpoints or probe: results among
// their files would be taken for a part of them.
void refuse_folder_of_others(const Path& results);

class MadeFolder {
 public:
  // Makes it, and has it alone until the end: what is taken away is nobody else's. UserError E0820
  // as above, and E0821 where another process has it; EnvironmentError E0603, E0606.
  explicit MadeFolder(const Path& path);
  MadeFolder(const MadeFolder&) = delete;
  MadeFolder& operator=(const MadeFolder&) = delete;
  ~MadeFolder();  // lets go; what it made and nothing was written into goes, too
  // Removes the folder with what was written into it, and the folders around it that are empty, as
  // far as they were not there. What cannot be removed stays.
  void take_away();

 private:
  Path path_, first_;  // the outermost that was not there; empty: all of them were
  std::unique_ptr<FolderLock> lock_;
};

}  // namespace aloft::cli
