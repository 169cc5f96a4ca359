// What device profiles and names of devices may say.
#include "backends/sim/profile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "backends/catalog.h"
#include "backends/sim/address_space.h"
#include "backends/sim/sim_device.h"
#include "base/error.h"

namespace aloft::sim {
namespace {

std::string error_of(const std::string& name) {
  try {
    open_device(name);
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), "E0332") << e.what();
    return e.what();
  }
  return "";
}

TEST(Profiles, AllThatAreBuiltInCanBeRead) {
  const auto names = profile_names();
  EXPECT_EQ(names.size(), 6u);
  for (const std::string& name : names) {
    const Profile p = load_profile(name);
    EXPECT_EQ(p.name, name);
    EXPECT_GE(p.memory, std::size_t{32} << 30) << name;
    EXPECT_GT(p.low_flops, p.f32_flops) << name;
    EXPECT_TRUE(p.capability.computes_bf16) << name;
  }
}

TEST(Profiles, ANameSaysMemoryAndDelays) {
  const SimOptions o = parse_sim("sim:910B4,memory=1.5GiB,delays=9");
  EXPECT_EQ(o.profile.name, "910B4");
  EXPECT_EQ(o.profile.memory, std::size_t{3} << 29);
  EXPECT_EQ(o.delays, 9u);
  EXPECT_EQ(parse_sim("sim").profile.memory, 0u);
  const SimOptions before = parse_sim("sim:memory=1KiB,910B3");  // in any order
  EXPECT_EQ(before.profile.name, "910B3");
  EXPECT_EQ(before.profile.memory, 1024u);
}

TEST(Profiles, WhatIsWrongIsNamed) {
  std::string known;
  for (const DeviceKind& kind : device_kinds())
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  EXPECT_NE(error_of("npu").find("one of: " + known), std::string::npos);
  EXPECT_NE(error_of("simulator").find("there is no device"), std::string::npos);
  EXPECT_NE(error_of("sim:910B9").find("910B3"), std::string::npos);
  EXPECT_NE(error_of("sim:memory=2").find("2GiB"), std::string::npos);
  EXPECT_NE(error_of("sim:memory=-2GiB").find("above 0"), std::string::npos);
  EXPECT_NE(error_of("sim:memory=0.0001KiB").find("a byte"), std::string::npos);
  EXPECT_NE(error_of("sim:910B3,H100").find("two profiles"), std::string::npos);
  EXPECT_NE(error_of("sim:delays=x").find("delays=SEED"), std::string::npos);
  EXPECT_NE(error_of("cpu:2").find("cpu"), std::string::npos);
}

TEST(Profiles, AFileIsReadAndItsMistakesAreAllNamed) {
  const std::string path = ::testing::TempDir() + "/profile_test.toml";
  std::ofstream(path) << "memory_gib = 2\ntypes = [\"f32\", \"f16\"]\nlow_tflops = 10\n";
  const SimOptions o = parse_sim("sim:" + path);
  EXPECT_EQ(o.profile.memory, std::size_t{2} << 30);
  EXPECT_FALSE(o.profile.capability.stores_bf16);
  EXPECT_TRUE(o.profile.capability.stores_f16);
  std::ofstream(path) << "f32_ops = [\"softmax\", \"relu\"]\n";
  EXPECT_EQ(parse_sim("sim:" + path).profile.f32_ops,
            (std::vector<std::string>{"softmax", "relu"}));
  std::ofstream(path) << "f32_ops = [\"sofmax\"]\n";
  EXPECT_NE(error_of("sim:" + path).find("no op \"sofmax\""), std::string::npos);
  std::ofstream(path) << "memory_gib = -1\nspeed = 3\ntypes = [\"f8\"]\n";
  const std::string wrong = error_of("sim:" + path);
  for (const char* part : {":1: memory_gib", ":2: \"speed\"", ":3: types", "launch_us"})
    EXPECT_NE(wrong.find(part), std::string::npos) << wrong;
  std::ofstream(path) << "# nothing\n";
  EXPECT_NE(error_of("sim:" + path).find("there is no key in it"), std::string::npos);
  std::ofstream(path) << "memory_gib = 1e-12\n";
  EXPECT_NE(error_of("sim:" + path).find(":1: memory_gib: need a byte"), std::string::npos);
  std::ofstream(path) << "memory_gib = = 1\n";
  EXPECT_NE(error_of("sim:" + path + ",delays=1").find(":1:"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(Profiles, WhatIsNoFileIsRefusedAndNamedHarmlessly) {
  EXPECT_NE(error_of("sim:/dev/null").find("regular file"), std::string::npos);
  const std::string path = ::testing::TempDir() + "/odd\x1b[2J\nname.toml";
  std::ofstream(path) << "speed = 3\n";
  const std::string said = error_of("sim:" + path);
  EXPECT_NE(said.find("odd\\x1b[2J\\nname.toml:1: "), std::string::npos) << said;
  EXPECT_EQ(said.find('\x1b'), std::string::npos) << said;
  std::filesystem::remove(path);
}

TEST(Addresses, SayHowMuchFits) {
  EXPECT_EQ(AddressSpace(1 << 20).capacity(), std::size_t{1} << 20);
  EXPECT_EQ(AddressSpace(0).capacity(), std::size_t{1} << 37);
}

}  // namespace
}  // namespace aloft::sim
