// One process at a time works in a folder: a lock file that names its holder. The system lets go of
// the lock when the holder ends, however it ends; the file that is then left is stale and taken
// over. Where the file system keeps no locks, or the holder ran on another machine, what the file
// says decides.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/process.h"

namespace aloft {

struct LockHolder {
  ProcessName process;
  std::string since;  // UTC
};

// What a lock file says; nothing where it is empty or says something else.
std::optional<LockHolder> parse_lock(std::string_view text);
std::string lock_text(const LockHolder& holder);

enum class LockState { Stale, Held, Elsewhere };
// What a lock file means to `self`, which holds the system's lock on it (`locked`) or could not
// have one because the file system keeps none.
LockState state_of(const LockHolder& holder, const ProcessName& self, bool locked);

class FolderLock {
 public:
  // Takes the lock `file`, whose folder exists. UserError E0821 names who holds it;
  // EnvironmentError E0603 where the file cannot be made.
  explicit FolderLock(Path file);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();  // lets go, and removes the file

 private:
  bool try_once();
  void write_holder() const;

  Path file_;
  int fd_ = -1;
};

}  // namespace aloft
