// What observers see of the virtual clock: each instruction takes its own time, behind what it
// waits for, by the lengths of its run.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "backends/catalog.h"
#include "e2e/training.h"
#include "nn/linear.h"
#include "ops/activation.h"
#include "runtime/observer.h"

namespace aloft::e2e {
namespace {

struct Net : nn::Module {
  nn::Linear up{*this, "up", 512, 1024}, down{*this, "down", 1024, 16};
  Tensor operator()(const Tensor& x) { return down(gelu(up(x))); }
};

struct Times {
  double begin = 0, end = 0;
  double took() const { return end - begin; }
};

// By identity. The times are asked for behind the run: to wait for one would move the host's clock.
struct Timeline : Observer {
  std::map<std::string, std::pair<Event, Event>> events;
  void after(const OpEvent& e) override { events[std::string(e.identity)] = {e.begin, e.end}; }
  std::map<std::string, Times> times() const {
    std::map<std::string, Times> all;
    for (const auto& [identity, at] : events)
      all[identity] = {at.first.seconds(), at.second.seconds()};
    return all;
  }
};

template <class F>
std::map<std::string, Times> timeline(F& f, std::int64_t rows) {
  const Tensor x =
      from_floats(std::vector<float>(static_cast<std::size_t>(rows) * 512, 0.1F), {rows, 512});
  Timeline look;
  const Observing looking(current_device(), look);
  f(x);
  return look.times();
}

TEST(Timeline, AShortBatchTakesLess) {
  use_cpu();
  const DeviceScope on(open_device("sim:910B3"));
  Net net;
  const auto forward = [&](const Tensor& x) { return net(x); };
  auto bound = compile(forward);
  const auto whole = timeline(bound, 4096), part = timeline(bound, 1024);
  auto own = compile(forward);
  const auto small = timeline(own, 1024);
  for (const char* name : {"up/linear#0", "/gelu#0"}) {
    ASSERT_TRUE(part.contains(name)) << name;
    EXPECT_LT(part.at(name).took(), 0.6 * whole.at(name).took()) << name;
    EXPECT_NEAR(part.at(name).took(), small.at(name).took(), 1e-12) << name;
  }
}

TEST(Timeline, AnInstructionBeginsBehindWhatItWaitsFor) {
  use_cpu();
  const DeviceScope on(open_device("sim:910B3"));
  Net here, away;
  for (const VariablePtr& v : away.parameters()) v->home = {Space::Host};
  auto plain = compile([&](const Tensor& x) { return here(x); });
  auto fetching = compile([&](const Tensor& x) { return away(x); });
  const auto alone = timeline(plain, 64), waits = timeline(fetching, 64);
  int fetches = 0;
  for (const auto& [identity, t] : waits) {
    EXPECT_GT(t.took(), 0) << identity;
    if (!identity.starts_with("fetch/")) {
      EXPECT_NEAR(t.took(), alone.at(identity).took(), 1e-12) << identity;
      continue;
    }
    ++fetches;
    const auto user = identity.substr(identity.rfind(' ') + 1);
    EXPECT_GE(waits.at(user).begin, t.end) << identity;
  }
  EXPECT_EQ(fetches, 4);
}

}  // namespace
}  // namespace aloft::e2e
