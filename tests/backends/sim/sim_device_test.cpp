// The software device by itself: memory that the host cannot touch, streams and events, a limit, a
// clock that only its own work moves.
#include "backends/sim/sim_device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "backends/catalog.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/sim/compute_pool.h"
#include "base/error.h"
#include "exec/launch.h"

namespace aloft::sim {
namespace {

SimDevice& device(const std::string& name) { return dynamic_cast<SimDevice&>(open_device(name)); }

std::vector<float> numbers(std::size_t n) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), 1.0f);
  return v;
}

TEST(SimDevice, IsTheSameForTheSameName) {
  EXPECT_EQ(&open_device("sim"), &open_device("sim"));
  EXPECT_NE(&open_device("sim"), &open_device("sim:910B3"));
  EXPECT_EQ(open_device("sim:910B3").name(), "sim:910B3");
  EXPECT_FALSE(open_device("sim").features().shares_host_memory);
}

TEST(SimDevice, GivesBackWhatWasWritten) {
  Device& d = device("sim");
  const Buffer b = d.allocate(1000 * sizeof(float));
  const std::vector<float> values = numbers(1000);
  std::ranges::copy(values, b.write<float>().begin());
  EXPECT_TRUE(std::ranges::equal(b.read<float>(), values));
  b.write_one(-1.0f, 999);
  EXPECT_EQ(b.read_one<float>(999), -1.0f);
  EXPECT_EQ(b.read_one<float>(998), 999.0f);
  b.edit<float>(0, 10)[3] = 7;
  EXPECT_EQ(b.read<float>(2, 3)[1], 7.0f);
  EXPECT_EQ(b.read<float>(2, 3)[2], 5.0f);
  b.zero();
  EXPECT_EQ(b.read_one<float>(500), 0.0f);
}

TEST(SimDevice, WhatAWriterLeavesOutIsNoNumber) {
  const Buffer b = device("sim").allocate_zeroed(4 * sizeof(float));
  b.write<float>()[1] = 2;
  const auto now = b.read<float>();
  EXPECT_EQ(now[1], 2);
  EXPECT_NE(now[0], now[0]);
}

TEST(SimDeviceDeathTest, TheHostCannotFollowItsAddresses) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        const Buffer b = device("sim").allocate_zeroed(64);
        const volatile float* stray = static_cast<const float*>(b.address());
        std::fprintf(stderr, "%f", static_cast<double>(*stray));
      },
      "");
}

TEST(SimDevice, MemoryThatIsFreedStaysForWhatWasGiven) {
  SimDevice& d = device("sim:memory=1MiB");
  const std::size_t bytes = std::size_t{900} << 10;
  const Buffer kept = d.allocate(bytes, Space::Host);
  for (int i = 0; i < 20; ++i) {  // each fits alone
    const Buffer b = d.allocate(bytes);
    d.stream().upload(b, std::vector<std::byte>(bytes, std::byte(i)).data());
    d.stream().copy(kept, b);
  }
  const auto now = kept.read<std::byte>();
  EXPECT_EQ(now[0], std::byte{19});
  EXPECT_EQ(now[bytes - 1], std::byte{19});
}

TEST(SimDevice, RefusesMoreThanItsLimit) {
  Device& d = device("sim:memory=2MiB");
  const Buffer first = d.allocate(std::size_t{1} << 20);
  try {
    d.allocate((std::size_t{1} << 20) + 1);
    FAIL() << "it was given";
  } catch (const EnvironmentError& e) {
    EXPECT_EQ(e.code(), "E0401");
    EXPECT_NE(std::string(e.what()).find("2.00 MiB in all, 1.00 MiB of it in use"),
              std::string::npos)
        << e.what();
  }
  EXPECT_NO_THROW(d.allocate(std::size_t{1} << 20));
  EXPECT_THROW(d.need_memory(1.5 * (1 << 20), "a test", "less"), EnvironmentError);
  EXPECT_NO_THROW(d.need_memory(1.5 * (1 << 20), "a test", "less", 1 << 20));
}

TEST(SimStreams, GoOnByThemselvesAndWaitForEvents) {
  SimDevice& d = device("sim");
  auto& first = dynamic_cast<SimStream&>(d.stream(0));
  auto& second = dynamic_cast<SimStream&>(d.stream(1));
  std::atomic<bool> may_go = false;
  std::atomic<int> seen = 0;
  first.enqueue("holds", 1, [&] {
    while (!may_go) std::this_thread::yield();
    seen = 1;
  });
  const Event held = first.record();
  second.wait(held);
  second.enqueue("waits", 1, [&] { seen = seen == 1 ? 2 : -1; });
  EXPECT_FALSE(held.has_happened());
  EXPECT_EQ(seen, 0);
  may_go = true;
  second.synchronize();
  EXPECT_TRUE(held.has_happened());
  EXPECT_EQ(seen, 2);
}

TEST(SimStreams, WithoutTheWaitTheSecondIsFirst) {
  SimDevice& d = device("sim");
  auto& first = dynamic_cast<SimStream&>(d.stream(0));
  auto& second = dynamic_cast<SimStream&>(d.stream(1));
  std::atomic<bool> may_go = false;
  std::atomic<int> seen = 0;
  first.enqueue("holds", 1, [&] {
    while (!may_go) std::this_thread::yield();
    seen = 1;
  });
  second.enqueue("does not wait", 1, [&] { seen = seen == 1 ? 2 : -1; });
  second.synchronize();
  EXPECT_EQ(seen, -1);
  may_go = true;
  d.synchronize();
}

TEST(SimStreams, AnErrorNamesItsInstructionAtTheNextWaitOnce) {
  SimDevice& d = device("sim:delays=3");
  auto& stream = dynamic_cast<SimStream&>(d.stream());
  bool is_done = false;
  stream.enqueue("h.3/matmul#0", 0, [] { throw InternalError("a kernel failed"); });
  stream.enqueue("h.3/add#0", 0, [&] { is_done = true; });
  try {
    stream.synchronize();
    FAIL() << "nothing came out";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("h.3/matmul#0 (sim:delays=3, stream 0)"),
              std::string::npos)
        << e.what();
  }
  EXPECT_FALSE(is_done);  // what comes behind an error is not done
  EXPECT_NO_THROW(stream.synchronize());
}

TEST(SimStreams, AnEventThatNobodyWaitsForTakesNoErrorWithIt) {
  SimDevice& d = device("sim:delays=5");
  auto& first = dynamic_cast<SimStream&>(d.stream(0));
  auto& second = dynamic_cast<SimStream&>(d.stream(1));
  bool is_done = false;
  first.enqueue("h.0/add#0", 0, [] { throw InternalError("a kernel failed"); });
  const Event dropped = first.record();
  second.wait(first.record());
  second.enqueue("h.0/mul#0", 0, [&] { is_done = true; });
  for (int i = 0; i < 2; ++i) EXPECT_THROW(dropped.wait(), InternalError);
  EXPECT_THROW(d.synchronize(), InternalError);  // of both streams at once
  EXPECT_FALSE(is_done);
  EXPECT_NO_THROW(d.synchronize());
}

// Memory of the host's that is only counted.
class Counted : public Device {
 public:
  Counted() : Device(cpu_device().backend()) {}
  std::string name() const override { return "counted"; }
  Buffer allocate(std::size_t bytes, Space space) override {
    asked_ += bytes;
    return cpu_device().allocate(bytes, space);
  }
  Buffer allocate_zeroed(std::size_t bytes, Space space) override {
    asked_ += bytes;
    return cpu_device().allocate_zeroed(bytes, space);
  }
  void need_memory(double, std::string_view, std::string_view, double) const override {}
  std::byte* map(const Block& block) override { return cpu_device().map(block); }
  Stream& stream(int index) override { return cpu_device().stream(index); }
  void synchronize() override {}
  std::size_t asked() const { return asked_; }

 private:
  std::size_t asked_ = 0;
};

TEST(SimDevice, AsksItsLimitBeforeItTakesMemoryOfTheHost) {
  Counted host;
  SimDevice d("sim:memory=1MiB", parse_sim("sim:memory=1MiB"), host);
  EXPECT_THROW(d.allocate(2 << 20), EnvironmentError);
  EXPECT_THROW(d.allocate_zeroed(2 << 20), EnvironmentError);
  EXPECT_EQ(host.asked(), 0u);
  const Buffer fits = d.allocate(1 << 20), beside = d.allocate(2 << 20, Space::Host);
  EXPECT_EQ(host.asked(), std::size_t{3} << 20);
}

TEST(SimDeviceDeathTest, AKernelThatEndsTheProcessIsNotWaitedFor) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto end_in_a_kernel = [] {
    SimDevice& d = device("sim");
    dynamic_cast<SimStream&>(d.stream()).enqueue("exit", 0, [] {
      compute(1, [] { std::exit(3); });
    });
    d.synchronize();
  };
  EXPECT_EXIT(end_in_a_kernel(), testing::ExitedWithCode(3), "");
}

TEST(SimKernels, GiveTheBitsOfTheCpuAndTakeTheTimeOfTheirCost) {
  const TensorType a{DType::F32, {256, 512}}, b{DType::F32, {512, 128}};
  const TensorType out{DType::F32, {256, 128}};
  const CallSpec call{"matmul", {}, {a, b}, {out}, 2};
  const std::vector<float> x = numbers(256 * 512), y = numbers(512 * 128);
  std::vector<float> want;
  for (const char* name : {"cpu", "sim:910B3", "sim:H100,delays=5"}) {
    Device& d = open_device(name);
    const Buffer in[] = {d.allocate(a.max_bytes()), d.allocate(b.max_bytes())};
    const Buffer result[] = {d.allocate(out.max_bytes())};
    in[0].write_from(std::as_bytes(std::span(x)));
    in[1].write_from(std::as_bytes(std::span(y)));
    d.synchronize();
    if (auto* sim = dynamic_cast<SimDevice*>(&d)) sim->take_timeline();
    launch(d, d.kernels().get(call), call, in, result, {}, {"a"});
    const auto got = result[0].read<float>();
    if (want.empty()) want.assign(got.begin(), got.end());
    EXPECT_TRUE(std::ranges::equal(got, want)) << name;
    auto* sim = dynamic_cast<SimDevice*>(&d);
    if (!sim) continue;
    const std::vector<Span> spans = sim->take_timeline();
    ASSERT_GE(spans.size(), 1u);
    EXPECT_EQ(spans[0].name, "a/matmul");
    const Profile& p = sim->profile();
    const double flops = 2.0 * 256 * 512 * 128;
    EXPECT_GE(spans[0].end - spans[0].begin, p.launch_seconds + flops / p.f32_flops * 0.99);
  }
}

TEST(SimKernels, AStrayAddressIsRefusedByName) {
  Device& d = device("sim");
  const TensorType t{DType::F32, {64}};
  const CallSpec call{"identity", {}, {t}, {t}, 1};
  const Buffer out[] = {d.allocate(t.max_bytes())}, small[] = {d.allocate(16)};
  try {
    launch(d, d.kernels().get(call), call, small, out, {}, {"h.0.mlp"});
    FAIL() << "it was taken";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("h.0.mlp/identity"), std::string::npos) << e.what();
  }
}

// A count of elements whose bytes would wrap around is no small one.
TEST(Buffers, ElementsBeyondWhatBytesCanCountAreRefused) {
  const Buffer b = cpu_device().allocate_zeroed(64);
  constexpr std::size_t kWraps = SIZE_MAX / 4 + 2;
  EXPECT_THROW(b.read<float>(kWraps, 1), InternalError);
  EXPECT_THROW(b.read<float>(0, kWraps), InternalError);
  EXPECT_THROW(b.write<float>(kWraps, 1), InternalError);
  EXPECT_THROW(b.edit<float>(kWraps, 1), InternalError);
  EXPECT_THROW(b.read_one<float>(kWraps), InternalError);
  EXPECT_THROW(b.write_one<float>(1, kWraps), InternalError);
}

}  // namespace
}  // namespace aloft::sim
