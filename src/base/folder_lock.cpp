#include "base/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "base/at_offset.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"

namespace aloft {
namespace {

using nlohmann::json;

constexpr std::size_t kLongest = 4096;  // of a lock file

std::string text_of(int fd) {
  std::string text(kLongest, '\0');
  text.resize(pread_all(fd, 0, text).bytes);
  return text;
}

EnvironmentError cannot_lock(const Path& file, std::string_view doing, int error) {
  return EnvironmentError("E0603", "cannot write a file")
      .line("file", file.string())
      .saw(fmt::format("{}: {}", doing, std::generic_category().message(error)));
}

[[noreturn]] void refuse(const Path& file, const std::optional<LockHolder>& holder,
                         LockState state) {
  UserError e("E0821", "another process works in this folder");
  e.add_line("at", file.parent_path().string());
  if (holder)
    e.add_line("holder", fmt::format("process {} on {}, since {}", holder->process.pid,
                                     holder->process.host, holder->since));
  if (state == LockState::Elsewhere)
    e.add_line("try", "wait until it has ended; if it has, remove " + file.string() +
                          " (from here nobody can tell)");
  else
    e.add_line("try", "wait until it has ended, or use another folder");
  throw e;
}

// Whether `fd` still is what the path names: its holder may have removed the file meanwhile.
bool still_there(int fd, const Path& file) {
  struct stat mine {
  }, theirs{};
  const bool seen = ::fstat(fd, &mine) == 0 && ::stat(file.c_str(), &theirs) == 0;
  if (!seen && errno != ENOENT) throw cannot_lock(file, "stat", errno);
  return seen && mine.st_ino == theirs.st_ino && mine.st_dev == theirs.st_dev;
}

}  // namespace

std::optional<LockHolder> parse_lock(std::string_view text) {
  const json j = parse_json(text);
  if (!j.is_object()) return std::nullopt;
  bool whole = true;
  const auto text_at = [&](const char* key) {
    const auto it = j.find(key);
    if (it != j.end() && it->is_string()) return it->get<std::string>();
    whole = false;
    return std::string();
  };
  const auto count_at = [&](const char* key, std::uint64_t most) -> std::uint64_t {
    const auto it = j.find(key);
    if (it != j.end() && it->is_number_unsigned() && it->get<std::uint64_t>() <= most)
      return it->get<std::uint64_t>();
    whole = false;
    return 0;
  };
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  LockHolder h;
  h.process.host = text_at("host");
  h.process.boot = text_at("boot");
  h.process.pid = static_cast<std::int64_t>(count_at("pid", std::numeric_limits<pid_t>::max()));
  h.process.start = count_at("process_start", kMost);
  h.since = text_at("since");
  return whole ? std::optional(h) : std::nullopt;
}

std::string lock_text(const LockHolder& h) {
  const json j = {{"host", h.process.host},
                  {"boot", h.process.boot},
                  {"pid", h.process.pid},
                  {"process_start", h.process.start},
                  {"since", h.since}};
  return json_text(j) + "\n";
}

LockState state_of(const LockHolder& holder, const ProcessName& self, bool locked) {
  const ProcessName& p = holder.process;
  const bool same_start = !p.boot.empty() && p.boot == self.boot;
  if (!same_start && p.host != self.host) return LockState::Elsewhere;
  // One kernel keeps its locks truly; and no process outlives its machine's start.
  if (locked || (!same_start && !p.boot.empty())) return LockState::Stale;
  const auto start = start_of_process(p.pid);
  return start && (*start == p.start || p.start == 0) ? LockState::Held : LockState::Stale;
}

FolderLock::FolderLock(Path file) : file_(std::move(file)) {
  try {
    for (int tries = 0; tries < 100; ++tries)
      if (try_once()) return;
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);
    throw;
  }
  refuse(file_, std::nullopt, LockState::Held);
}

// False where the file changed under this process's hands.
bool FolderLock::try_once() {
  const int fd = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) throw cannot_lock(file_, "open", errno);
  fd_ = fd;
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  const int error = locked ? 0 : errno;
  const auto leave = [&] { ::close(std::exchange(fd_, -1)); };
  if (error == EINTR) return leave(), false;
  if (error == EWOULDBLOCK) {
    auto holder = parse_lock(text_of(fd));
    for (int i = 0; !holder && i < 20; ++i) {  // it may be about to write its name
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      holder = parse_lock(text_of(fd));
    }
    const bool there = still_there(fd, file_);
    leave();
    if (!there) return false;
    refuse(file_, holder, LockState::Held);
  }
  if (!still_there(fd, file_)) return leave(), false;
  if (const auto holder = parse_lock(text_of(fd))) {
    const LockState state = state_of(*holder, this_process(), locked);
    if (state != LockState::Stale) {
      leave();
      refuse(file_, holder, state);
    }
    log_info("process {} on {} has ended without removing {}: taken over", holder->process.pid,
             holder->process.host, file_.string());
  }
  try {
    write_holder();
  } catch (...) {
    ::unlink(file_.c_str());
    leave();
    throw;
  }
  return true;
}

void FolderLock::write_holder() const {
  const std::string text = lock_text({this_process(), utc_timestamp()});
  if (::ftruncate(fd_, 0) != 0) throw cannot_lock(file_, "truncate", errno);
  if (const int error = pwrite_all(fd_, 0, std::as_bytes(std::span(text))).error; error != 0)
    throw cannot_lock(file_, "write", error);
}

FolderLock::~FolderLock() {
  if (fd_ < 0) return;
  ::unlink(file_.c_str());  // before the lock goes: nobody else's file is removed
  ::close(fd_);
}

}  // namespace aloft
