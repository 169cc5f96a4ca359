// A second name of a file: a link, or a copy where the system makes none.
#include "files/linked_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

struct stat facts_of(const Path& file) {
  struct stat facts = {};
  EXPECT_EQ(::stat(file.c_str(), &facts), 0) << file;
  return facts;
}

TEST(LinkedFile, IsAnotherNameOfTheSameBytes) {
  const TemporaryFolder folder;
  TemporaryFolder::put(folder / "own", "content");
  TemporaryFolder::put(folder / "other", "what had the name");
  for (int twice = 0; twice < 2; ++twice) {
    link_file(folder / "own", folder / "other");
    EXPECT_EQ(read_file(folder / "other"), "content");
    EXPECT_EQ(facts_of(folder / "own").st_ino, facts_of(folder / "other").st_ino);
    EXPECT_EQ(facts_of(folder / "own").st_nlink, 2u);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

TEST(LinkedFile, IsACopyInAnotherFileSystem) {
  const TemporaryFolder folder;
  const Path other = Path("/dev/shm") / folder.path().filename();
  if (!path_exists("/dev/shm") || facts_of("/dev/shm").st_dev == facts_of(folder.path()).st_dev)
    GTEST_SKIP() << "/dev/shm is no file system of its own here";
  std::string content(3 << 20, 'a');  // of several pieces
  content += "end";
  TemporaryFolder::put(folder / "own", content);
  make_folder(other);
  link_file(folder / "own", other / "copy");
  EXPECT_EQ(read_file(other / "copy"), content);
  EXPECT_EQ(facts_of(other / "copy").st_nlink, 1u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(other), {}), 1);
  std::filesystem::remove_all(other);
  EXPECT_THROW(link_file(folder / "own", other / "copy"), Error);
}

}  // namespace
}  // namespace aloft
