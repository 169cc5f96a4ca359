// What processes that were killed leave behind: temporary files and folders that carry the number
// of the process that was writing them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/file.h"

namespace aloft {

// The process in a temporary's name: ".run.json.4711-0.tmp" of AtomicFile, "0123abcd.tmp4711.0" of
// ScratchFolder; nothing for any other name.
std::optional<std::int64_t> writer_of_temporary(std::string_view name);

// Removes the temporaries that lie directly in `folder` and that nobody writes any longer: no
// process holds them, and their writer has ended, or they have not changed for a day (its number
// may be another's by now, or one of another machine). What cannot be removed stays. Returns how
// many went.
int remove_leftovers(const Path& folder);
// The same of those alone that a ScratchFolder(beside) has left, where others' files may lie, too.
int remove_leftovers_beside(const Path& beside);

// A new folder `beside` + ".tmp" + this process + count, held while this object lives and removed
// with it, unless it was renamed. What has such a name already stays as it is. EnvironmentError
// E0604.
class ScratchFolder {
 public:
  explicit ScratchFolder(const Path& beside);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const Path& path() const { return path_; }

 private:
  Path path_;
  int held_ = -1;
};

}  // namespace aloft
