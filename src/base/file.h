// Whole files: read with a limit, mapped read-only, written so that a reader (and a machine that
// loses power) sees the old content or the new, never a part.
// A file that is missing or of the wrong kind is DataError (exit 3). Where the system fails (no
// rights, a failing disk, no descriptors, a circle of links, a full disk) it is EnvironmentError
// (exit 4). Both carry the path and the system's own words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace aloft {

using Path = std::filesystem::path;

// What the system takes for it. It ends at the first zero byte: a path with one would be another's.
// UserError E0609, as from everything here and in folder.h that is given such a path.
const char* system_path(const Path& path);

inline constexpr std::uint64_t kDefaultReadLimit = std::uint64_t{1} << 30;

// The whole content. DataError E0601 (missing, a directory), E0602 (more than `limit` bytes;
// nothing of that size is allocated), E0616; EnvironmentError E0606 (the system does not give it).
std::string read_file(const Path& path, std::uint64_t limit = kDefaultReadLimit);

// A file of the kernel (/proc, /sys), which is small and says no size; "" where it cannot be read.
std::string kernel_text(const Path& path);

// Bytes of a regular file. DataError E0601, EnvironmentError E0606.
std::uint64_t size_of_file(const Path& path);

// Whether something is there; whether it is a folder, a regular file. EnvironmentError E0606 where
// the system cannot tell: no rights on the way, a circle of links, a name too long.
bool path_exists(const Path& path);
bool is_folder(const Path& path);
bool is_file(const Path& path);

// What tells a folder from another one that is given its name.
struct FolderId {
  std::uint64_t device = 0, inode = 0;
  friend bool operator==(const FolderId&, const FolderId&) = default;
};
// Nothing where there is no folder. EnvironmentError E0606.
std::optional<FolderId> folder_id(const Path& path);

// A regular file, read in pieces.
class InputFile {
 public:
  explicit InputFile(const Path& path);  // DataError E0601, EnvironmentError E0606
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  // Fills `out` from byte `offset` on; how many bytes there were: fewer at the file's end.
  // EnvironmentError E0606.
  std::size_t read_at(std::uint64_t offset, std::span<char> out) const;
  const Path& path() const { return path_; }

 private:
  Path path_;
  int fd_ = -1;
};

// A file mapped read-only for the life of this object. An empty file gives an empty span. The
// content must not be cut short by others meanwhile: the system answers that with SIGBUS.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const Path& path);  // DataError E0601; EnvironmentError E0605, E0606
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  // Tells the system that the file will be read in no order: no read-ahead.
  void expect_random_access() const;
  // Hands the pages of [begin, end) back: they no longer count as this process's memory. Reading
  // them again reads the file.
  void release(std::size_t begin, std::size_t end) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Writes a file in pieces. Nothing appears at `path` before commit(); destroyed without it, no
// trace is left. EnvironmentError E0603 on any failure.
class AtomicFile {
 public:
  explicit AtomicFile(Path path);  // the folder must exist
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // Replaces bytes already written: a header that is known only at the end.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  std::uint64_t written() const { return written_; }
  // Flushes to the disk, renames over `path` (a symbolic link there is replaced), and flushes the
  // folder. An existing file's permissions are kept.
  void commit();
  // The same, and nothing is flushed: for what can be made again and is known by its hash. Others
  // see it whole; behind a loss of power it may be damaged.
  void commit_unflushed();

 private:
  void finish(bool is_flushed);
  [[noreturn]] void fail(std::string_view doing, int error) const;

  Path path_, temporary_;
  int fd_ = -1;
  std::uint64_t written_ = 0;
};

void write_file_atomic(const Path& path, std::span<const std::byte> bytes);
void write_file_atomic(const Path& path, std::string_view text);

// Renames a finished file or folder and flushes the folder that holds it. EnvironmentError E0603.
void rename_durably(const Path& from, const Path& to);

// Makes renames and new names in `folder` survive a power loss. EnvironmentError E0603.
void sync_folder(const Path& folder);

// Creates `folder` and its parents. EnvironmentError E0604.
void make_folder(const Path& folder);

}  // namespace aloft
