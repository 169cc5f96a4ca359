// Variables that lie away from where kernels work: in the host's memory, in parts on two devices.
// What is computed has the bits of the cpu, however long each copy waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "backends/sim/sim_device.h"
#include "base/error.h"
#include "frontend/programs.h"
#include "memory/programs.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "optim/lamb.h"
#include "plan/happens_before.h"
#include "runtime/current_device.h"

namespace aloft::memory {
namespace {

using Place = TinyGpt::Place;

struct Training {
  const char* name;
  const char* precision;
  int accumulation;
  StateFormat master;
  UpdateTime update;
  OptimizerSpec rule = optim::AdamW{.lr = 5e-3};
};

const Training kTrainings[] = {
    {"F32", "O0", 1, StateFormat::F32, UpdateTime::Late},
    {"Masters", "O2:bf16", 1, StateFormat::F32, UpdateTime::Late},
    {"SplitMasters", "O2:bf16", 1, StateFormat::Split, UpdateTime::Late},
    {"Accumulation", "O2:fp16", 3, StateFormat::F32, UpdateTime::Late},
    {"EarlyUpdate", "O2:bf16", 1, StateFormat::F32, UpdateTime::Early},
    {"Lamb", "O2:bf16", 1, StateFormat::Split, UpdateTime::Late, optim::Lamb{.lr = 5e-3}},
    {"StatesInBf16", "O2:bf16", 1, StateFormat::F32, UpdateTime::Late,
     optim::AdamW{.lr = 5e-3, .states = StateFormat::BF16}},
};

Seen run_on(
    const std::string& device, const Training& t, const Place& place,
    const Look& look = [](Executor&) {}) {
  const DeviceScope on(open_device(device));
  return train_gpt(t.precision, 0.1, t.accumulation, look, t.master, place, t.update, t.rule);
}

void expect_equal(const Seen& seen, const Seen& cpu, const std::string& what) {
  EXPECT_EQ(seen.numbers, cpu.numbers) << what;
  ASSERT_EQ(seen.states.size(), cpu.states.size());
  for (std::size_t i = 0; i < cpu.states.size(); ++i)
    EXPECT_TRUE(seen.states[i] == cpu.states[i]) << what << ", variable " << i;
}

void put_all(const nn::Module& model, const Optimizer& optimizer, const Home& home) {
  for (const auto& list : {model.parameters(), optimizer.state()})
    for (const VariablePtr& v : list) v->home = home;
}

void put_moment(Optimizer& optimizer, std::size_t k, const Home& home) {
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i)
    optimizer.moment(k, i)->home = home;
}

std::size_t bytes_at(const Plan& plan, const ArenaAt& at) {
  const auto it = plan.arena_bytes.find(at);
  return it == plan.arena_bytes.end() ? 0 : it->second;
}

class Homes : public testing::TestWithParam<Training> {
 protected:
  static void SetUpTestSuite() { e2e::use_cpu(); }
};

TEST_P(Homes, AMomentInTheHostsMemory) {
  const Seen cpu = run_on("cpu", GetParam(), {});
  const Place place = [](nn::Layer&, Optimizer& o) { put_moment(o, 1, {Space::Host}); };
  expect_equal(run_on("cpu", GetParam(), place), cpu, "on the cpu, which has one memory");
  std::size_t whole = 0;
  run_on("sim", GetParam(), {}, [&](Executor& e) { whole = bytes_at(e.plan(), Arena::Optimizer); });
  for (const char* device : {"sim", "sim:delays=11"})
    expect_equal(run_on(device, GetParam(), place,
                        [&](Executor& e) {
                          const Plan& plan = e.plan();
                          const ArenaAt host(Arena::Optimizer, {.space = Space::Host});
                          EXPECT_GT(bytes_at(plan, host), 0u);
                          EXPECT_EQ(bytes_at(plan, host) + bytes_at(plan, Arena::Optimizer), whole);
                          EXPECT_EQ(e.arena(host).space(), Space::Host);
                        }),
                 cpu, device);
}

TEST_P(Homes, MomentsInPartsOnTwoDevices) {
  const Seen cpu = run_on("cpu", GetParam(), {});
  for (const auto& [first, second] : {std::pair{"sim", "sim:delays=12"},
                                      std::pair{"sim:delays=13", "sim"}, std::pair{"cpu", "sim"}}) {
    const Home home{.shards = {&open_device(first), &open_device(second)}};
    const Place place = [&](nn::Layer&, Optimizer& o) {
      put_moment(o, 0, home);
      put_moment(o, 1, home);
    };
    expect_equal(run_on(first, GetParam(), place,
                        [&, &second = second](Executor& e) {
                          const std::size_t here = bytes_at(e.plan(), {Arena::Optimizer, {}}),
                                            there = bytes_at(e.plan(),
                                                             {Arena::Optimizer, {.shard = {1, 2}}});
                          EXPECT_GT(there, 0u);
                          EXPECT_GE(here, there);
                          EXPECT_EQ(&e.arena({Arena::Optimizer, {.shard = {1, 2}}}).device(),
                                    &open_device(second));
                        }),
                 cpu, std::string(first) + " and " + second);
  }
}

// Observers are told which stream an instruction is on: copies are beside the kernels.
TEST(HomesOfMoments, CopiesAreHeardOfOnTheirOwnStream) {
  e2e::use_cpu();
  struct Streams : Observer {
    void after(const OpEvent& e) override { of[e.kernel == "copy"].insert(e.stream); }
    std::map<bool, std::set<int>> of;  // by whether it is a copy
  } streams;
  const Observing looking(open_device("sim"), streams);
  run_on("sim", kTrainings[0], [](nn::Layer&, Optimizer& o) { put_moment(o, 1, {Space::Host}); });
  EXPECT_EQ(streams.of, (std::map<bool, std::set<int>>{{false, {0}}, {true, {1}}}));
}

// Parameters, masters, moments, sums, counters: each instruction's operands come and go.
TEST_P(Homes, EverythingIsAway) {
  const Seen cpu = run_on("cpu", GetParam(), {});
  const Place to_host = [](nn::Layer& m, Optimizer& o) { put_all(m, o, {Space::Host}); };
  const Home parts{.shards = {&open_device("sim:delays=14"), &open_device("sim")}};
  const Place in_parts = [&](nn::Layer& m, Optimizer& o) { put_all(m, o, parts); };
  expect_equal(run_on("sim:delays=14", GetParam(), to_host), cpu, "in the host's memory");
  expect_equal(run_on("sim:delays=14", GetParam(), in_parts), cpu, "in parts");
}

// What a plan needs is what a device needs: variables that move in are not there twice, and those
// that move out make room first.
TEST_P(Homes, FitWherePlanAndVariablesDo) {
  for (const bool is_away : {false, true}) {
    std::size_t variables = 0, planned = 0;
    const Place place = [&](nn::Layer& model, Optimizer& o) {
      variables = 0;
      for (const auto& list : {model.parameters(), o.state()})
        for (const VariablePtr& v : list) variables += v->type.max_bytes();
      if (is_away)
        for (const std::size_t k : {0, 1}) put_moment(o, k, {Space::Host});
    };
    const Seen free = run_on("sim", GetParam(), place, [&](Executor& e) {
      planned = 0;
      for (const auto& [at, bytes] : e.plan().arena_bytes)
        if (at.space == Space::Device) planned += bytes;
    });
    const std::size_t kib = (std::max(variables, planned) >> 10) + 32;
    const std::string tight = "sim:memory=" + std::to_string(kib) + "KiB";
    expect_equal(run_on(tight, GetParam(), place), free, tight);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Homes, testing::ValuesIn(kTrainings),
                         [](const auto& info) { return std::string(info.param.name); });

// The plan of a step with a moment away.
Plan plan_with_copies() {
  Plan plan;
  run_on(
      "sim", kTrainings[1], [](nn::Layer&, Optimizer& o) { put_moment(o, 1, {Space::Host}); },
      [&](Executor& e) { plan = e.plan(); });
  return plan;
}

TEST(Copies, RunBesideTheKernelsOnAStreamOfTheirOwn) {
  e2e::use_cpu();
  const Plan plan = plan_with_copies();
  const Program& step = *std::ranges::find_if(plan.programs, [](const Program& p) {
    return std::ranges::any_of(p.instructions, [](const Instruction& i) { return i.stream > 0; });
  });
  int copies = 0, waits = 0;
  for (const Instruction& ins : step.instructions) {
    const bool is_copy = ins.call.op == Name(kCopyOp);
    EXPECT_EQ(ins.stream, is_copy ? 1 : 0) << ins.identity;
    copies += is_copy;
    waits += static_cast<int>(ins.waits.size());
  }
  EXPECT_GT(copies, 10);
  EXPECT_GT(waits, 0);
  const Plan again = plan_from_json(to_json(plan));
  EXPECT_EQ(to_json(again), to_json(plan));
  EXPECT_NE(print(plan).find("stream 1 waits"), std::string::npos);
  EXPECT_NE(print(plan).find("optimizer@host"), std::string::npos);
}

// Each wait is needed: where one is taken away, verify() finds the race or the memory that is
// overwritten too soon.
TEST(Copies, APlanWithoutOneOfItsWaitsIsRefused) {
  e2e::use_cpu();
  const Plan plan = plan_with_copies();
  EXPECT_NO_THROW(verify(plan));
  int removed = 0;
  for (std::size_t p = 0; p < plan.programs.size(); ++p)
    for (std::size_t i = 0; i < plan.programs[p].instructions.size(); ++i)
      for (std::size_t w = 0; w < plan.programs[p].instructions[i].waits.size(); ++w) {
        Plan broken = plan;
        auto& waits = broken.programs[p].instructions[i].waits;
        waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
        EXPECT_THROW(verify(broken), InternalError)
            << plan.programs[p].instructions[i].identity << ", wait " << w;
        EXPECT_THROW(plan_from_json(to_json(broken)), DataError);
        ++removed;
      }
  EXPECT_GT(removed, 2);
}

// What an update gives a variable elsewhere is tapped before it goes there.
TEST(Copies, TapsOfUpdatesOfWhatIsAway) {
  e2e::use_cpu();
  const auto train = [](const std::string& device, const Home& home) {
    const DeviceScope on(open_device(device));
    manual_seed(3);
    models::Mlp model({6, 40, 3});
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 0.01}, "O2:bf16");
    put_all(model, opt, home);
    auto step = compile(
        [&, &net = net, &opt = opt](const Tensor& x) {
          const Tensor y = net(x);
          return minimize(mean(y * y), opt);
        },
        {.taps = {"update:*"}});
    std::map<std::string, std::vector<double>> seen;
    for (int i = 0; i < 3; ++i) {
      step(from_floats(std::vector<float>(24, 0.5F + static_cast<float>(i)), {4, 6}));
      for (const Tap& t : step.taps())
        seen[t.name + "#" + std::to_string(i)] = step.tap(t.name).to_vector();
    }
    return seen;
  };
  const auto cpu = train("cpu", {});
  EXPECT_GT(cpu.size(), 6u);
  EXPECT_EQ(train("sim:delays=18", {Space::Host}), cpu);
  EXPECT_EQ(train("sim", {.shards = {&open_device("sim"), &open_device("sim:delays=19")}}), cpu);
  EXPECT_EQ(train("cpu", {.shards = {&open_device("cpu"), &open_device("sim")}}), cpu);
}

TEST(Copies, EagerCodeReadsAndWritesWhatIsAway) {
  e2e::use_cpu();
  const auto train = [](const std::string& device, const Home& home) {
    const DeviceScope on(open_device(device));
    manual_seed(3);
    models::Mlp model({6, 40, 3});
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 0.01}, "O2:bf16");
    for (const auto& list : {model.parameters(), opt.state()})
      for (const VariablePtr& v : list) v->home = home;
    const auto one = [&, &net = net, &opt = opt](const Tensor& x) {
      const Tensor y = net(x);
      return minimize(mean(y * y), opt);
    };
    auto compiled = compile(one);
    std::vector<double> losses;
    for (int i = 0; i < 6; ++i) {  // the first is compiled: it puts them there
      std::vector<float> values(4 * 6);
      for (std::size_t k = 0; k < values.size(); ++k)
        values[k] = static_cast<float>((k * 7 + static_cast<std::size_t>(i)) % 5) - 2;
      const Tensor x = from_floats(values, {4, 6});
      losses.push_back((i % 2 == 0 ? compiled(x) : one(x)).loss());
    }
    for (const VariablePtr& v : model.parameters())
      for (const float f : v->to_floats()) losses.push_back(f);
    return losses;
  };
  const std::vector<double> cpu = train("cpu", {});
  EXPECT_EQ(train("sim:delays=15", {Space::Host}), cpu);
  EXPECT_EQ(train("sim", {.shards = {&open_device("sim"), &open_device("sim:delays=16")}}), cpu);
}

TEST(Copies, HomesThatDisagreeAreRefused) {
  e2e::use_cpu();
  const auto code_of = [](const std::function<void()>& f) {
    try {
      f();
    } catch (const UserError& e) {
      return e.code();
    }
    return std::string("none");
  };
  const DeviceScope on(open_device("sim"));
  Device &here = open_device("sim"), &there = open_device("sim:delays=17");
  manual_seed(3);
  models::Mlp model({6, 8, 3});
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 0.01}, "O0");
  auto step = compile([&, &net = net, &opt = opt](const Tensor& x) {
    const Tensor y = net(x);
    return minimize(mean(y * y), opt);
  });
  const Tensor x = from_floats(std::vector<float>(12, 1.0F), {2, 6});
  for (const std::vector<Device*>& shards :
       {std::vector{&there, &here}, {nullptr, &there}, {&here, nullptr}, {&here, &here}}) {
    opt.moment(0, 0)->home.shards = shards;
    EXPECT_EQ(code_of([&] { step(x); }), "E0333");
  }
  opt.moment(0, 0)->home.shards = {&here, &there};
  EXPECT_EQ(code_of([&] { step(x); }), "none");
  opt.moment(0, 1)->home = {Space::Host};  // too late
  EXPECT_EQ(code_of([&] { step(x); }), "E0333");
  opt.moment(0, 1)->home = {};
  EXPECT_EQ(code_of([&] { step(x); }), "none");
}

}  // namespace
}  // namespace aloft::memory
