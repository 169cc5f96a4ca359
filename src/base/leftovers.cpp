#include "base/leftovers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <system_error>

#include "base/error.h"
#include "base/folder.h"
#include "base/process.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;

// Reads "4711" + separator + "0" + `rest`.
std::optional<std::int64_t> process_in(std::string_view text, char separator,
                                       std::string_view rest) {
  std::int64_t pid = 0;
  unsigned count = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, pid);
  if (first.ec != std::errc() || pid <= 0 || first.ptr == end || *first.ptr != separator)
    return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, count);
  if (second.ec != std::errc() || std::string_view(second.ptr, end) != rest) return std::nullopt;
  return pid;
}

// Whether some process of this machine holds it. Where the file system keeps no locks, nobody does.
bool is_held(const Path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool held = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return held;
}

const fs::file_time_type process_began = fs::file_time_type::clock::now();

// Whether the writer's number says nothing any longer: in containers it is often the same as ours.
bool is_old(const Path& path, std::int64_t writer) {
  std::error_code error;
  const auto changed = fs::last_write_time(path, error);
  if (error) return false;
  return fs::file_time_type::clock::now() - changed > std::chrono::hours(24) ||
         (writer == ::getpid() && process_began - changed > std::chrono::seconds(2));
}

constexpr std::string_view kScratch = ".tmp";

// `of`: what stands before the process in the name; "": anything.
int remove_those(const Path& folder, const std::string& of) {
  int removed = 0;
  for (const Path& path : list_folder(folder)) {
    const std::string name = path.filename().string();
    if (!of.empty() &&
        (!name.starts_with(of) || name.rfind(kScratch) + kScratch.size() != of.size()))
      continue;
    const auto writer = writer_of_temporary(name);
    if (!writer || (is_running(*writer) && !is_old(path, *writer)) || is_held(path)) continue;
    std::error_code failed;
    fs::remove_all(path, failed);
    removed += !failed;
  }
  return removed;
}

}  // namespace

std::optional<std::int64_t> writer_of_temporary(std::string_view name) {
  if (name.starts_with('.') && name.ends_with(".tmp")) {
    const std::size_t dot = name.rfind('.', name.size() - 5);
    return dot == 0 ? std::nullopt : process_in(name.substr(dot + 1), '-', ".tmp");
  }
  const std::size_t at = name.rfind(".tmp");
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  return process_in(name.substr(at + 4), '.', "");
}

int remove_leftovers(const Path& folder) { return remove_those(folder, ""); }

int remove_leftovers_beside(const Path& beside) {
  return remove_those(beside.has_parent_path() ? beside.parent_path() : Path("."),
                      beside.filename().string().append(kScratch));
}

ScratchFolder::ScratchFolder(const Path& beside) {
  static std::atomic<int> counter{0};
  if (beside.has_parent_path()) make_folder(beside.parent_path());
  for (;;) {
    path_ = beside;
    path_ += std::string(kScratch) + std::to_string(::getpid()) + "." + std::to_string(counter++);
    if (::mkdir(system_path(path_), 0777) == 0) break;
    if (errno != EEXIST)
      throw EnvironmentError("E0604", "cannot create a folder")
          .line("folder", path_.string())
          .saw(std::generic_category().message(errno));
  }
  held_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (held_ >= 0) ::flock(held_, LOCK_EX | LOCK_NB);  // where there are locks
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (held_ >= 0) ::close(held_);
}

}  // namespace aloft
