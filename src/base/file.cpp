#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/at_offset.h"
#include "base/error.h"
#include "base/lfs_pointer.h"
#include "base/text.h"

namespace aloft {
namespace {

std::string words_of(int error) { return std::generic_category().message(error); }

DataError cannot_read(const Path& path, std::string_view why) {
  DataError e("E0601", "cannot read a file");
  e.add_line("file", path.string());
  e.add_line("saw", why);
  return e;
}

// What is not there is a mistake in the name; everything else is the system's trouble.
[[noreturn]] void refuse_reading(const Path& path, int error) {
  if (error == ENOENT || error == ENOTDIR || error == EISDIR)
    throw cannot_read(path, words_of(error));
  EnvironmentError e("E0606", "the system does not give access to a file or folder");
  e.add_line("file", path.string());
  e.add_line("saw", words_of(error));
  if (error == EACCES || error == EPERM)
    e.add_line("try", "check the rights on it and on its folders");
  if (error == EMFILE || error == ENFILE)
    e.add_line("try", "a higher limit on open files: ulimit -n");
  throw e;
}

// What stat says; nothing where nothing is there.
std::optional<struct stat> status_of(const Path& path) {
  struct stat info {};
  if (::stat(system_path(path), &info) == 0) return info;
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  refuse_reading(path, errno);
}

EnvironmentError cannot_write(const Path& path, std::string_view doing, int error) {
  EnvironmentError e("E0603", "cannot write a file");
  e.add_line("file", path.string());
  e.add_line("saw", fmt::format("{}: {}", doing, words_of(error)));
  if (error == ENOSPC || error == EDQUOT) e.add_line("try", "free space on this disk");
  if (error == ENOENT) e.add_line("try", "create the folder first");
  return e;
}

// A descriptor that closes itself.
struct Descriptor {
  int fd;
  explicit Descriptor(int f) : fd(f) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

int open_retrying(const Path& path, int flags, mode_t mode = 0) {
  int fd;
  do fd = ::open(system_path(path), flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

// Opens for reading and reports the size; folders are refused. A pipe that nobody has opened for
// writing is empty: to open it would wait for a writer for ever.
int open_to_read(const Path& path, struct stat& info) {
  Descriptor file(open_retrying(path, O_RDONLY | O_NONBLOCK));
  if (file.fd < 0) refuse_reading(path, errno);
  if (::fcntl(file.fd, F_SETFL, O_RDONLY) != 0) refuse_reading(path, errno);
  if (::fstat(file.fd, &info) != 0) refuse_reading(path, errno);
  if (S_ISDIR(info.st_mode)) throw cannot_read(path, "it is a folder");
  return std::exchange(file.fd, -1);
}

DataError too_large(const Path& path, std::uint64_t limit) {
  DataError e("E0602", "a file is larger than can be right");
  e.add_line("file", path.string());
  e.add_line("need", fmt::format("at most {}", human_bytes(limit)));
  return e;
}

}  // namespace

const char* system_path(const Path& path) {
  if (path.native().find('\0') != std::string::npos)
    throw UserError("E0609", "a path has a zero byte in it").saw(in_quotes(path.native()));
  return path.c_str();
}

std::string read_file(const Path& path, std::uint64_t limit) {
  struct stat info {};
  Descriptor file(open_to_read(path, info));
  const auto size = static_cast<std::uint64_t>(std::max<off_t>(info.st_size, 0));
  if (size > limit) throw too_large(path, limit);
  // The size is a hint only: a pipe has none, and a file may grow while it is read.
  std::string out(size + 1, '\0');
  std::size_t used = 0;
  for (;;) {
    const ssize_t got = ::read(file.fd, out.data() + used, out.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_reading(path, errno);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
    if (used > limit) throw too_large(path, limit);
    if (used == out.size()) out.resize(out.size() + std::max<std::size_t>(out.size() / 2, 4096));
  }
  out.resize(used);
  if (is_lfs_pointer(out)) throw lfs_pointer(path.string());
  return out;
}

std::string kernel_text(const Path& path) {
  try {
    return read_file(path, 1 << 20);
  } catch (const Error&) {
    return "";
  }
}

std::uint64_t size_of_file(const Path& path) {
  struct stat info {};
  Descriptor file(open_to_read(path, info));
  if (!S_ISREG(info.st_mode)) throw cannot_read(path, "it is not a regular file");
  return static_cast<std::uint64_t>(info.st_size);
}

bool path_exists(const Path& path) { return status_of(path).has_value(); }

bool is_folder(const Path& path) {
  const auto info = status_of(path);
  return info && S_ISDIR(info->st_mode);
}

bool is_file(const Path& path) {
  const auto info = status_of(path);
  return info && S_ISREG(info->st_mode);
}

std::optional<FolderId> folder_id(const Path& path) {
  const auto info = status_of(path);
  if (!info || !S_ISDIR(info->st_mode)) return std::nullopt;
  return FolderId{info->st_dev, info->st_ino};
}

InputFile::InputFile(const Path& path) : path_(path) {
  struct stat info {};
  fd_ = open_to_read(path, info);
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::size_t InputFile::read_at(std::uint64_t offset, std::span<char> out) const {
  const Moved moved = pread_all(fd_, offset, out);
  if (moved.error != 0) refuse_reading(path_, moved.error);
  return moved.bytes;
}

MappedFile::MappedFile(const Path& path) {
  struct stat info {};
  Descriptor file(open_to_read(path, info));
  if (!S_ISREG(info.st_mode)) throw cannot_read(path, "it is not a regular file");
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;
  void* at = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.fd, 0);
  if (at == MAP_FAILED) {
    const int error = errno;
    throw EnvironmentError("E0605", "cannot map a file into memory")
        .line("file", path.string())
        .saw(fmt::format("{} of {}", words_of(error), human_bytes(size_)));
  }
  data_ = static_cast<const std::byte*>(at);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(std::size_t begin, std::size_t end) const {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  begin = begin / page * page;
  if (end = std::min(end, size_); begin < end)
    ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

void MappedFile::expect_random_access() const {
  if (data_) ::madvise(const_cast<std::byte*>(data_), size_, MADV_RANDOM);  // a hint; may fail
}

AtomicFile::AtomicFile(Path path) : path_(std::move(path)) {
  static std::atomic<unsigned> count{0};
  if (!path_.has_filename()) fail("open", EISDIR);
  // A device or a pipe must not be replaced by a file.
  struct stat old {};
  if (::stat(system_path(path_), &old) == 0 && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode))
    fail("open", EINVAL);
  temporary_ = path_.parent_path() / fmt::format(".{}.{}-{}.tmp", path_.filename().string(),
                                                 ::getpid(), count.fetch_add(1));
  fd_ = open_retrying(temporary_, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd_ < 0) fail("open", errno);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(std::string_view doing, int error) const {
  throw cannot_write(path_, doing, error);
}

namespace {
// While one lives, what is written goes past the system's cache, where the file system can: copying
// it there costs more than the disk does, and takes memory from what runs meanwhile.
class PastTheCache {
 public:
  explicit PastTheCache(int fd) : fd_(fd), flags_(::fcntl(fd, F_GETFL)) {
    is_on_ = flags_ >= 0 && ::fcntl(fd_, F_SETFL, flags_ | O_DIRECT) == 0;
  }
  ~PastTheCache() { end(); }
  PastTheCache(const PastTheCache&) = delete;
  PastTheCache& operator=(const PastTheCache&) = delete;
  // Whether it was so until now, and is not any more.
  bool end() { return std::exchange(is_on_, false) && ::fcntl(fd_, F_SETFL, flags_) == 0; }

 private:
  int fd_, flags_;
  bool is_on_ = false;
};

// Whether bytes are whole pieces of memory and of a file, of which there are many.
bool are_large_blocks(std::span<const std::byte> bytes, std::uint64_t at) {
  constexpr std::size_t kMany = std::size_t{1} << 20, kBlock = 4096;
  return bytes.size() >= kMany && bytes.size() % kBlock == 0 && at % kBlock == 0 &&
         reinterpret_cast<std::uintptr_t>(bytes.data()) % kBlock == 0;
}
}  // namespace

void AtomicFile::write(std::span<const std::byte> bytes) {
  ensure(fd_ >= 0, "a file is written before it is committed");
  std::optional<PastTheCache> past;
  if (are_large_blocks(bytes, written_)) past.emplace(fd_);
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    // A file system may take the wish and not the write, or not the rest of a block.
    if (put < 0 && errno == EINVAL && past && past->end()) continue;
    if (put < 0) fail("write", errno);
    written_ += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  ensure(fd_ >= 0, "a file is written before it is committed");
  ensure(offset <= written_ && bytes.size() <= written_ - offset,
         "write_at replaces bytes written before");
  if (const int error = pwrite_all(fd_, offset, bytes).error; error != 0) fail("write", error);
}

void AtomicFile::commit() {
  finish(true);
  sync_folder(path_.parent_path());
}

void AtomicFile::commit_unflushed() { finish(false); }

void AtomicFile::finish(bool is_flushed) {
  ensure(fd_ >= 0, "a file is committed once");
  struct stat old {};
  if (::stat(path_.c_str(), &old) == 0) {
    if (S_ISDIR(old.st_mode)) fail("rename", EISDIR);
    // Not being the owner is no reason to lose the data.
    if (::fchmod(fd_, old.st_mode & 07777) != 0 && errno != EPERM) fail("chmod", errno);
  }
  if (is_flushed && ::fsync(fd_) != 0) fail("fsync", errno);
  const int closed = ::close(fd_);
  const int close_error = errno;
  fd_ = -1;
  if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = closed != 0 ? close_error : errno;
    ::unlink(temporary_.c_str());
    fail(closed != 0 ? "close" : "rename", error);
  }
}

void write_file_atomic(const Path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file_atomic(const Path& path, std::string_view text) {
  write_file_atomic(path, std::as_bytes(std::span(text)));
}

void sync_folder(const Path& folder) {
  const Path where = folder.empty() ? Path(".") : folder;
  Descriptor file(open_retrying(where, O_RDONLY | O_DIRECTORY));
  if (file.fd < 0) throw cannot_write(where, "open", errno);
  // Some network file systems cannot flush a folder and say EINVAL: there is nothing better to do.
  if (::fsync(file.fd) != 0 && errno != EINVAL && errno != ENOTSUP)
    throw cannot_write(where, "fsync", errno);
}

void rename_durably(const Path& from, const Path& to) {
  if (::rename(system_path(from), system_path(to)) != 0) throw cannot_write(to, "rename", errno);
  sync_folder(to.parent_path());
}

void make_folder(const Path& folder) {
  std::error_code error;
  std::filesystem::create_directories(system_path(folder), error);
  if (!error && is_folder(folder)) return;
  throw EnvironmentError("E0604", "cannot create a folder")
      .line("folder", folder.string())
      .saw(error ? error.message() : "a file of that name is in the way");
}

}  // namespace aloft
