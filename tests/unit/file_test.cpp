#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/append_file.h"
#include "base/at_offset.h"
#include "base/error.h"
#include "base/folder.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "aloft-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }
  int entries() const {
    return static_cast<int>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
  Path folder;
};

TEST_F(FileTest, WritesReadsMapsAndReplaces) {
  const Path path = folder / "a.bin";
  const std::string big(300000, '\xfe');
  for (const std::string& content : {std::string("one\0two", 7), std::string(), big}) {
    write_file_atomic(path, content);
    EXPECT_EQ(read_file(path), content);
    EXPECT_EQ(size_of_file(path), content.size());
    EXPECT_EQ(MappedFile(path).text(), content);
    EXPECT_EQ(entries(), 1);
  }
}

TEST_F(FileTest, APointerOfGitLfsIsNotTheFile) {
  write_file_atomic(folder / "a",
                    "version https://git-lfs.github.com/spec/v1\n"
                    "oid sha256:7b6f\nsize 988097824\n");
  try {
    read_file(folder / "a");
    FAIL() << "it was taken for the file";
  } catch (const DataError& e) {
    EXPECT_EQ(e.code(), "E0616");
    EXPECT_NE(std::string(e.what()).find("git lfs pull"), std::string::npos);
  }
}

TEST_F(FileTest, APathDoesNotEndAtAZeroByte) {
  const Path path = folder / std::string("a\0b", 3);
  write_file_atomic(folder / "a", "another's");
  const auto refused = [](const auto& call) {
    try {
      call();
      return std::string("accepted");
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find("a\\x00b"), std::string::npos) << e.what();
      return e.code();
    }
  };
  EXPECT_EQ(refused([&] { read_file(path); }), "E0609");
  EXPECT_EQ(refused([&] { MappedFile{path}; }), "E0609");
  EXPECT_EQ(refused([&] { path_exists(path); }), "E0609");
  EXPECT_EQ(refused([&] { is_file(path); }), "E0609");
  EXPECT_EQ(refused([&] { write_file_atomic(path, "ours"); }), "E0609");
  EXPECT_EQ(refused([&] { rename_durably(folder / "a", path); }), "E0609");
  EXPECT_EQ(refused([&] { make_folder(path); }), "E0609");
  EXPECT_EQ(refused([&] { sync_folder(path); }), "E0609");
  EXPECT_EQ(refused([&] { list_folder(path); }), "E0609");
  EXPECT_EQ(refused([&] { has_name(path); }), "E0609");
  EXPECT_EQ(read_file(folder / "a"), "another's");
  EXPECT_EQ(entries(), 1);
}

TEST_F(FileTest, WhatTheKernelDoesNotSayIsEmpty) {
  EXPECT_NE(kernel_text("/proc/self/status").find("VmSize:"), std::string::npos);
  EXPECT_EQ(kernel_text("/proc/self/no-such-file"), "");
  EXPECT_EQ(kernel_text("/proc/self"), "");
  EXPECT_EQ(kernel_text("/dev/zero"), "");  // endless
}

TEST_F(FileTest, NoDeviceOrPipeIsReplaced) {
  const Path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(write_file_atomic(pipe, "text"), EnvironmentError);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(FileTest, APipeWithoutAWriterIsEmpty) {
  const Path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_file(pipe), "");
  EXPECT_THROW(MappedFile{pipe}, DataError);
}

TEST_F(FileTest, APipeWithoutAReaderIsNotWaitedFor) {
  const Path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ::alarm(20);  // it would hang
  EXPECT_THROW(AppendFile{pipe}, EnvironmentError);
  ::alarm(0);
}

TEST_F(FileTest, WhatTheSystemRefusesIsTheSystemsTrouble) {
  fs::create_symlink("loop", folder / "loop");
  for (const Path& path : {folder / "loop", folder / std::string(5000, 'n')}) {
    EXPECT_THROW(read_file(path), EnvironmentError);
    EXPECT_THROW(path_exists(path), EnvironmentError);
    EXPECT_THROW(InputFile{path}, EnvironmentError);
  }
  EXPECT_THROW(read_file(folder / "absent"), DataError);
  EXPECT_THROW(read_file(folder), DataError);
  EXPECT_FALSE(path_exists(folder / "absent" / "below"));
  write_file_atomic(folder / "ten", "0123456789");
  const InputFile file(folder / "ten");
  char some[6];
  EXPECT_EQ(file.read_at(2, some), 6u);
  EXPECT_EQ(std::string(some, 6), "234567");
  EXPECT_EQ(file.read_at(8, some), 2u);
}

TEST_F(FileTest, ReadsAndWritesAtAPlaceGoOnAndSayWhatEndsThem) {
  const int fd = ::open((folder / "a").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  const auto ten = std::as_bytes(std::span("0123456789", 10));
  EXPECT_EQ(pwrite_all(fd, 2, ten).bytes, 10u);
  char some[8];
  EXPECT_EQ(pread_all(fd, 4, some).bytes, 8u);
  EXPECT_EQ(std::string(some, 8), "23456789");
  const Moved end = pread_all(fd, 8, some);
  EXPECT_EQ(end.bytes, 4u);
  EXPECT_EQ(end.error, 0);
  // The system takes a part, and no more when it is asked again.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit fifteen = before;
  fifteen.rlim_cur = 15;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &fifteen), 0);
  const Moved cut = pwrite_all(fd, 10, ten);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(cut.bytes, 5u);
  EXPECT_EQ(cut.error, EFBIG);
  ::close(fd);
  EXPECT_EQ(pread_all(fd, 0, some).error, EBADF);
  EXPECT_EQ(pwrite_all(fd, 0, ten).error, EBADF);
}

TEST_F(FileTest, KeepsPermissionsAndTheOldContentUntilCommit) {
  const Path path = folder / "a";
  write_file_atomic(path, "old");
  ::chmod(path.c_str(), 0640);
  {
    AtomicFile file(path);
    file.write("half of the new");
    EXPECT_EQ(read_file(path), "old");
  }  // never committed
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(), 1);
  AtomicFile file(path);
  file.write("new");
  file.commit();
  EXPECT_EQ(read_file(path), "new");
  EXPECT_THROW(file.write("more"), InternalError);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
}

TEST_F(FileTest, AHeaderCanBeWrittenLast) {
  AtomicFile file(folder / "a");
  file.write("0000 payload");
  file.write_at(0, std::as_bytes(std::span("head", 4)));
  EXPECT_THROW(file.write_at(10, std::as_bytes(std::span("too long", 8))), InternalError);
  file.commit();
  EXPECT_EQ(read_file(folder / "a"), "head payload");
}

// Whole blocks of memory and of the file go past the system's cache, where the file system can;
// what lies between them goes as ever.
TEST_F(FileTest, LargeBlocksAndOthersAreItsBytes) {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  std::string want;
  AtomicFile file(folder / "large");
  const auto memory = std::make_unique<std::array<char, 3 * kBlock>>();
  char* aligned = memory->data() + 4096 - reinterpret_cast<std::uintptr_t>(memory->data()) % 4096;
  for (std::size_t i = 0; i < 2 * kBlock; ++i) aligned[i] = static_cast<char>(i * 2654435761 >> 13);
  const std::pair<std::size_t, std::size_t> pieces[] = {
      {0, 2 * kBlock}, {4096, kBlock}, {1, kBlock}, {0, 5}, {0, kBlock}, {0, 4091}, {8192, kBlock}};
  for (const auto& [at, count] : pieces) {
    const std::string_view piece(aligned + at, count);
    file.write(piece);
    want += piece;
  }
  EXPECT_EQ(file.written(), want.size());
  file.write_at(5, std::as_bytes(std::span("over", 4)));
  file.commit();
  want.replace(5, 4, "over");
  EXPECT_TRUE(read_file(folder / "large", std::uint64_t{1} << 28) == want);
}

TEST_F(FileTest, WhatCannotBeReadIsADataError) {
  EXPECT_THROW(read_file(folder / "missing"), DataError);
  EXPECT_THROW(read_file(folder), DataError);
  EXPECT_THROW(MappedFile(folder / "missing"), DataError);
  EXPECT_THROW(MappedFile("/dev/zero"), DataError);
  EXPECT_THROW(size_of_file("/dev/zero"), DataError);
  EXPECT_THROW(read_file("/dev/zero", 100000), DataError);  // endless, with no size to see
  write_file_atomic(folder / "ten", "0123456789");
  EXPECT_EQ(read_file(folder / "ten", 10), "0123456789");
  try {
    read_file(folder / "ten", 9);
    FAIL();
  } catch (const DataError& e) {
    EXPECT_EQ(e.code(), "E0602");
    EXPECT_NE(std::string(e.what()).find("ten"), std::string::npos);
  }
}

TEST_F(FileTest, WhatCannotBeWrittenLeavesNothing) {
  EXPECT_THROW(write_file_atomic(folder / "no" / "such", "x"), EnvironmentError);
  EXPECT_THROW(write_file_atomic(folder / "", "x"), EnvironmentError);
  fs::create_directory(folder / "taken");
  EXPECT_THROW(write_file_atomic(folder / "taken", "x"), EnvironmentError);
  EXPECT_EQ(entries(), 1);
  EXPECT_THROW(make_folder("/dev/null/x"), EnvironmentError);
  EXPECT_THROW(rename_durably(folder / "missing", folder / "b"), EnvironmentError);
  make_folder(folder / "x" / "y");
  EXPECT_TRUE(fs::is_directory(folder / "x" / "y"));
}

TEST_F(FileTest, MappingsMove) {
  write_file_atomic(folder / "a", "abc");
  MappedFile a(folder / "a");
  MappedFile b = std::move(a);
  EXPECT_EQ(b.text(), "abc");
  EXPECT_TRUE(a.bytes().empty());  // NOLINT: a moved-from mapping is empty
  a = std::move(b);
  EXPECT_EQ(a.text(), "abc");
}

// A process killed in the middle of writing leaves the old file whole.
TEST_F(FileTest, AKilledWriterLeavesTheOldContent) {
  const Path path = folder / "a";
  write_file_atomic(path, "old");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(path);
    file.write(std::string(100000, 'n'));
    [[maybe_unused]] auto n = ::write(ready[1], "r", 1);
    ::pause();
  }
  char c;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(read_file(path), "old");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(FileTest, ListsAFolderByNameAndTakesNoErrorForAnEmptyOne) {
  for (const char* name : {"b", "a", ".hidden"}) write_file_atomic(folder / name, "x");
  fs::create_symlink("nowhere", folder / "broken");
  EXPECT_EQ(list_folder(folder),
            (std::vector<Path>{folder / ".hidden", folder / "a", folder / "b", folder / "broken"}));
  EXPECT_EQ(list_folder(folder / "missing"), std::vector<Path>{});
  EXPECT_TRUE(has_name(folder / "broken") && !has_name(folder / "missing"));
  fs::create_symlink("loop", folder / "loop");
  EXPECT_THROW(list_folder(folder / "loop"), EnvironmentError);
  EXPECT_THROW(has_name(folder / "loop" / "run.json"), EnvironmentError);
}

}  // namespace
}  // namespace aloft
