#include "base/folder_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"
#include "base/folder.h"
#include "base/leftovers.h"
#include "base/log.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;

class FolderLockTest : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::Error); }
  std::string refusal() const {
    try {
      const FolderLock lock(folder_ / "run.lock");
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), "E0821");
      return e.what();
    }
    return "";
  }
  // Another process takes the lock and is killed.
  void leave_a_stale_one() const {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      const FolderLock lock(folder_ / "run.lock");
      (void)!::write(ready[1], "x", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    EXPECT_NE(refusal().find("process " + std::to_string(child)), std::string::npos);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (int end : ready) ::close(end);
  }
  TemporaryFolder folder_;
};

TEST_F(FolderLockTest, OneHolderAtATimeAndTheRefusalNamesIt) {
  {
    const FolderLock lock(folder_ / "run.lock");
    const std::string said = refusal();
    EXPECT_NE(said.find("process " + std::to_string(::getpid())), std::string::npos) << said;
    EXPECT_NE(said.find(this_process().host), std::string::npos) << said;
  }
  EXPECT_FALSE(fs::exists(folder_ / "run.lock"));
  EXPECT_EQ(refusal(), "");
}

TEST_F(FolderLockTest, WhatAKilledHolderLeavesIsTakenOver) {
  leave_a_stale_one();
  EXPECT_TRUE(fs::exists(folder_ / "run.lock"));
  EXPECT_EQ(refusal(), "");
  EXPECT_FALSE(fs::exists(folder_ / "run.lock"));
}

TEST_F(FolderLockTest, AnEmptyOrDamagedLockOfNobodyIsTakenOver) {
  for (const char* text : {"", "{", "[]", R"({"pid": "x"})"}) {
    folder_.put(folder_ / "run.lock", text);
    EXPECT_EQ(refusal(), "") << text;
  }
}

TEST(ParseLock, NumbersThatNoProcessHasNameNobody) {
  const auto text = [](std::string pid, std::string start) {
    return R"({"boot": "b", "host": "h", "pid": )" + pid + R"(, "process_start": )" + start +
           R"(, "since": "s"})";
  };
  const auto holder = parse_lock(text("17", "18446744073709551615"));
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->process, (ProcessName{"h", "b", 17, ~std::uint64_t{0}}));
  for (const char* pid : {"1e300", "-1", "1.5", "4294967296", "18446744073709551615", "null"})
    EXPECT_FALSE(parse_lock(text(pid, "1"))) << pid;
  for (const char* start : {"1e300", "-1", "1.5", "true"})
    EXPECT_FALSE(parse_lock(text("17", start))) << start;
}

TEST_F(FolderLockTest, AHolderElsewhereIsNotGuessedAbout) {
  folder_.put(folder_ / "run.lock",
              lock_text({{"another-machine", "another-boot", 17, 4711}, "2026-01-01T00:00:00Z"}));
  const std::string said = refusal();
  for (const char* part : {"process 17 on another-machine", "2026-01-01", "run.lock"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
  EXPECT_TRUE(fs::exists(folder_ / "run.lock"));
}

TEST_F(FolderLockTest, WhatALockMeans) {
  const ProcessName self = this_process();
  ASSERT_GT(self.start, 0u);
  const auto state = [&](ProcessName p, bool locked) { return state_of({p, ""}, self, locked); };
  EXPECT_EQ(state(self, true), LockState::Stale);  // the system says that nobody holds it
  EXPECT_EQ(state(self, false), LockState::Held);
  ProcessName reused = self;
  reused.start += 1;  // the number is another process's by now
  EXPECT_EQ(state(reused, false), LockState::Stale);
  ProcessName gone = self;
  gone.pid = (1 << 22) + 1;  // above the highest number there is
  EXPECT_EQ(state(gone, false), LockState::Stale);
  ProcessName before_restart = self;
  before_restart.boot = "an earlier start of this machine";
  EXPECT_EQ(state(before_restart, false), LockState::Stale);
  ProcessName other_container = self;
  other_container.host = "another-container";  // of the same kernel
  EXPECT_EQ(state(other_container, true), LockState::Stale);
  before_restart.host = "another-machine";
  EXPECT_EQ(state(before_restart, true), LockState::Elsewhere);
}

TEST_F(FolderLockTest, AFolderThatCannotBeWrittenIsTheEnvironmentsMatter) {
  EXPECT_THROW(FolderLock(folder_ / "missing" / "run.lock"), EnvironmentError);
}

class Leftovers : public FolderLockTest {};

TEST_F(Leftovers, TheNameOfATemporaryNamesItsWriter) {
  EXPECT_EQ(writer_of_temporary(".run.json.4711-0.tmp"), 4711);
  EXPECT_EQ(writer_of_temporary("00c0ffee.tmp4711.12"), 4711);
  for (const char* other :
       {"run.json", ".tmp", ".4711-0.tmp", "notes.tmp", ".a.b-0.tmp", ".a.4711.tmp", "x.tmp4711",
        "x.tmp4711.0.txt", ".tmp4711.0", "x.tmp-1.0"})
    EXPECT_EQ(writer_of_temporary(other), std::nullopt) << other;
}

TEST_F(Leftovers, OnlyWhatNobodyWritesAnyLongerGoes) {
  const std::string gone = std::to_string((1 << 22) + 1), alive = std::to_string(::getppid());
  const auto make = [&](const std::string& name) { folder_.put(folder_ / name, "half"); };
  make(".run.json." + gone + "-0.tmp");
  make(".run.json." + alive + "-0.tmp");
  make("notes.tmp");
  fs::create_directories(folder_ / ("00c0ffee.tmp" + gone + ".0"));
  make("00c0ffee.tmp" + gone + ".0/train.shard");
  fs::create_directories(folder_ / ("00c0ffee.tmp" + alive + ".1"));
  make(".old." + alive + "-7.tmp");
  fs::last_write_time(folder_ / (".old." + alive + "-7.tmp"),
                      fs::file_time_type::clock::now() - std::chrono::hours(25));
  EXPECT_EQ(remove_leftovers(folder_.path()), 3);
  EXPECT_FALSE(fs::exists(folder_ / (".run.json." + gone + "-0.tmp")));
  EXPECT_FALSE(fs::exists(folder_ / ("00c0ffee.tmp" + gone + ".0")));
  EXPECT_FALSE(fs::exists(folder_ / (".old." + alive + "-7.tmp")));
  EXPECT_TRUE(fs::exists(folder_ / (".run.json." + alive + "-0.tmp")));
  EXPECT_TRUE(fs::exists(folder_ / ("00c0ffee.tmp" + alive + ".1")));
  EXPECT_TRUE(fs::exists(folder_ / "notes.tmp"));
  EXPECT_EQ(remove_leftovers(folder_ / "missing"), 0);
}

TEST_F(Leftovers, AScratchFolderThatIsHeldStaysHoweverOldItLooks) {
  const auto scratch = std::make_unique<ScratchFolder>(folder_ / "00c0ffee");
  fs::last_write_time(scratch->path(), fs::file_time_type::clock::now() - std::chrono::hours(99));
  EXPECT_EQ(remove_leftovers(folder_.path()), 0);
  EXPECT_TRUE(fs::exists(scratch->path()));
}

TEST_F(Leftovers, BesideAPathOnlyThatPathsGo) {
  const std::string gone = std::to_string((1 << 22) + 1);
  for (const char* name : {"out.tmp", "out.tmpx.tmp", "outer.tmp", "x.out.tmp"})
    fs::create_directories(folder_ / (name + gone + ".0"));
  fs::create_directories(folder_ / "out.tmp");
  EXPECT_EQ(remove_leftovers_beside(folder_ / "out"), 1);
  for (const char* name : {"out.tmpx.tmp", "outer.tmp", "x.out.tmp"})
    EXPECT_TRUE(fs::exists(folder_ / (name + gone + ".0"))) << name;
  EXPECT_TRUE(fs::exists(folder_ / "out.tmp"));
  EXPECT_FALSE(fs::exists(folder_ / ("out.tmp" + gone + ".0")));
}

TEST_F(Leftovers, AScratchFolderIsNeverOneThatIsThere) {
  Path first = ScratchFolder(folder_ / "a").path();
  // The next ones, as far as the test can tell: this process counts.
  const std::string name = first.string();
  const std::size_t dot = name.rfind('.');
  const int count = std::stoi(name.substr(dot + 1));
  for (int next = count + 1; next < count + 4; ++next) {
    const Path taken = name.substr(0, dot + 1) + std::to_string(next);
    fs::create_directories(taken);
    folder_.put(taken / "thesis.txt", "mine");
  }
  {
    const ScratchFolder scratch(folder_ / "a");
    EXPECT_TRUE(list_folder(scratch.path()).empty());
  }
  for (int next = count + 1; next < count + 4; ++next)
    EXPECT_TRUE(fs::exists(name.substr(0, dot + 1) + std::to_string(next) + "/thesis.txt"));
}

}  // namespace
}  // namespace aloft
