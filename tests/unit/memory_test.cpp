// How much memory there is, read from made-up systems; and JSON that nests too deeply.
#include "base/memory.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class System {
 public:
  System() {
    put("proc/meminfo",
        "MemTotal:        4096000 kB\nMemFree: 1 kB\nMemAvailable:    2048000 kB\n"
        "SwapTotal:             0 kB\nSwapFree:              0 kB\n");
  }
  void put(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    TemporaryFolder::put(folder_ / name, text);
  }
  MachineMemory memory() const { return machine_memory(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

TEST(MachineMemory, IsTheMachinesWhereNothingLimitsIt) {
  const System system;
  EXPECT_EQ(system.memory().total, 4000 * kMiB);
  EXPECT_EQ(system.memory().available, 2000 * kMiB);
  EXPECT_EQ(system.memory().limited_by, "the machine");
  EXPECT_EQ(machine_memory("/nowhere").total, 0u);
}

TEST(MachineMemory, IsTheContainersInBothVersionsOfControlGroups) {
  const System two;
  two.put("proc/self/cgroup", "0::/a/b\n");
  two.put("sys/fs/cgroup/a/memory.max", "1048576000\n");  // the parent's limit holds as well
  two.put("sys/fs/cgroup/a/memory.current", "524288000\n");
  two.put("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 104857600\n");
  two.put("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(two.memory().total, 1000 * kMiB);
  EXPECT_EQ(two.memory().available, 600 * kMiB);  // what is cached and idle counts as free
  EXPECT_NE(two.memory().limited_by.find("container"), std::string::npos);

  const System one;
  one.put("proc/self/cgroup", "5:cpu:/x\n4:memory:/x\n");
  one.put("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "104857600\n");
  one.put("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "209715200\n");
  one.put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  EXPECT_EQ(one.memory().total, 100 * kMiB);
  EXPECT_EQ(one.memory().available, 0u);
}

TEST(MachineMemory, WhatIsNoNumberLimitsNothing) {
  const System system;
  system.put("proc/self/cgroup", "0::/a\n");
  for (const char* text : {"max\n", "", "-1\n", "x 104857600\n", "99999999999999999999\n"}) {
    system.put("sys/fs/cgroup/a/memory.max", text);
    EXPECT_EQ(system.memory().total, 4000 * kMiB) << text;
    EXPECT_EQ(system.memory().available, 2000 * kMiB) << text;
  }
  // A limit above what the machine has still holds for what is free.
  system.put("sys/fs/cgroup/a/memory.max", "8388608000\n");
  system.put("sys/fs/cgroup/a/memory.current", "8283750400\n");
  EXPECT_EQ(system.memory().total, 4000 * kMiB);
  EXPECT_EQ(system.memory().available, 100 * kMiB);
}

TEST(MachineMemory, MoreThanThereIsIsRefusedWithBothNumbers) {
  need_memory(1, "a byte", "nothing");
  try {
    need_memory(1e17, "a very large model", "a smaller one");
    FAIL() << "no machine has that";
  } catch (const EnvironmentError& e) {
    EXPECT_EQ(e.code(), "E0401");
    for (const char* part : {"a very large model", "in all", "free", "a smaller one"})
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Json, WhatNestsTooDeeplyIsNoValue) {
  for (const char* pair : {"[]", "{}"}) {
    const std::string deep(100000, pair[0]);
    EXPECT_TRUE(parse_json(deep).is_discarded());
    EXPECT_EQ(json_problem(deep), "JSON that is nested too deeply");
  }
  const std::string brackets_in_text = "[\"" + std::string(100, '[') + "\\\"[[\"]";
  EXPECT_TRUE(parse_json(brackets_in_text).is_array());
  EXPECT_TRUE(parse_json(std::string(60, '[') + std::string(60, ']')).is_array());
  EXPECT_EQ(json_problem("{"), "text that is not JSON");
  // Nothing that follows a zero byte is passed over.
  for (const char* behind : {"", "}", "[1]"}) {
    const std::string ends_early = std::string("[1]") + '\0' + behind;
    EXPECT_TRUE(parse_json(ends_early).is_discarded());
    EXPECT_EQ(json_problem(ends_early), "text with a zero byte, which is not JSON");
  }
  EXPECT_EQ(json_text(nlohmann::json("a\xff")), "\"a\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace aloft
