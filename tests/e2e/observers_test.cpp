// Looking on at programs and eager calls: what is told, in which order; that it changes nothing.
#include <gtest/gtest.h>

#include <set>

#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "models/mlp.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "optim/adamw.h"
#include "runtime/current_device.h"
#include "runtime/observer.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kRows = 8;

struct Told {
  std::string what, op, path, identity, kernel;
  Phase phase = Phase::Forward;
  std::int64_t step = 0, micro_batch = 0;
  int stream = 0;
  double begin = 0, end = 0;
  std::vector<std::int64_t> lengths;
  std::vector<std::byte> first;  // result
};

class Notes : public Observer {
 public:
  std::vector<Told> all;
  void program_begins(const ProgramEvent& e) override { note_program("begins", e); }
  void program_ends(const ProgramEvent& e) override { note_program("ends", e); }
  void before(const OpEvent& e) override {
    EXPECT_EQ(e.in.size(), e.call.in.size());
    EXPECT_EQ(e.out.size(), e.call.out.size());
    all.push_back(told("before", e));
  }
  void after(const OpEvent& e) override {
    Told t = told("after", e);
    t.begin = e.begin.seconds();
    t.end = e.end.seconds();
    if (!e.out.empty() && e.out[0]) {
      const auto bytes = e.out[0].read<std::byte>();
      t.first.assign(bytes.begin(), bytes.end());
    }
    all.push_back(t);
  }
  int count(std::string_view what) const {
    return static_cast<int>(
        std::ranges::count_if(all, [&](const Told& t) { return t.what == what; }));
  }

 private:
  void note_program(const char* what, const ProgramEvent& e) {
    Told t;
    t.what = what;
    t.identity = e.program;
    t.step = e.at.step;
    t.micro_batch = e.at.micro_batch;
    t.lengths.assign(e.lengths.begin(), e.lengths.end());
    all.push_back(t);
  }
  static Told told(const char* what, const OpEvent& e) {
    Told t;
    t.what = what;
    t.op = e.call.op.str();
    t.path = e.path;
    t.stream = e.stream;
    t.identity = e.identity;
    t.kernel = e.kernel;
    t.phase = e.phase;
    t.step = e.at.step;
    t.micro_batch = e.at.micro_batch;
    t.lengths.assign(e.lengths.begin(), e.lengths.end());
    return t;
  }
};

Tensor rows(std::int64_t n, int i) {
  std::vector<float> values(static_cast<std::size_t>(n * 6));
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<float>((k * 5 + static_cast<std::size_t>(i)) % 7) / 3 - 1;
  return from_floats(values, {n, 6});
}

Tensor classes(std::int64_t n) {
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < n; ++i) labels.push_back(static_cast<std::int32_t>(i % 3));
  return from_ints(labels, {n});
}

// Losses of some steps, and the bits at the end.
std::pair<std::vector<double>, std::map<std::string, std::string>> trained(bool is_compiled,
                                                                           Observer* observer) {
  use_cpu();
  eager().clear_tape();
  manual_seed(5);
  models::Mlp model({6, 10, 3});
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 0.02}, "O1:bf16");
  auto one = [&, &net = net, &opt = opt](const Tensor& x, const Tensor& label) {
    return minimize(cross_entropy(net(x), label), opt);
  };
  auto compiled = compile(one, {.name = "step"});
  std::optional<Observing> looking;
  if (observer) looking.emplace(current_device(), *observer);
  std::vector<double> losses;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t n = i == 2 ? kRows - 3 : kRows;
    const Tensor x = rows(n, i), label = classes(n);
    losses.push_back((is_compiled ? compiled(x, label) : one(x, label)).loss());
  }
  return {losses, state_of(model, opt)};
}

TEST(Observers, ChangeNothing) {
  for (const bool is_compiled : {false, true}) {
    Notes notes;
    EXPECT_EQ(trained(is_compiled, &notes), trained(is_compiled, nullptr)) << is_compiled;
    EXPECT_GT(notes.count("after"), 0);
  }
}

TEST(Observers, HearOfEachInstructionOfEachRun) {
  Notes notes;
  trained(true, &notes);
  EXPECT_EQ(notes.count("begins"), 4);
  EXPECT_EQ(notes.count("ends"), 4);
  EXPECT_EQ(notes.count("before"), notes.count("after"));
  std::set<Phase> phases;
  double last = 0;
  for (std::size_t i = 0; i < notes.all.size(); ++i) {
    const Told& t = notes.all[i];
    if (t.what == "before") {
      ASSERT_LT(i + 1, notes.all.size());
      EXPECT_EQ(notes.all[i + 1].what, "after");
      EXPECT_EQ(notes.all[i + 1].identity, t.identity);
      EXPECT_FALSE(t.kernel.empty());
      phases.insert(t.phase);
    } else if (t.what == "after") {
      EXPECT_GE(t.begin, last);
      EXPECT_GE(t.end, t.begin);
      last = t.end;
    }
  }
  EXPECT_EQ(phases, (std::set<Phase>{Phase::Forward, Phase::Backward, Phase::Update}));
  // The third batch is short, and steps count on.
  std::vector<std::int64_t> steps, lengths;
  for (const Told& t : notes.all)
    if (t.what == "begins") {
      steps.push_back(t.step);
      lengths.push_back(t.lengths.at(0));
    }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{kRows, kRows, kRows - 3, kRows}));
}

// The module that an instruction belongs to, its stream, and the micro-batch within a step of two.
TEST(Observers, KnowTheModuleTheStreamAndTheMicroBatch) {
  for (const bool is_compiled : {false, true}) {
    use_cpu();
    eager().clear_tape();
    manual_seed(5);
    models::Mlp model({6, 10, 3});
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 0.02}, "O0");
    opt.set_accumulation(2);
    auto part = [&, &net = net, &opt = opt](const Tensor& x, const Tensor& label) {
      return accumulate(cross_entropy(net(x), label), opt);
    };
    auto whole = [&, &net = net, &opt = opt](const Tensor& x, const Tensor& label) {
      return minimize(cross_entropy(net(x), label), opt);
    };
    auto compiled_part = compile(part, {.name = "part"});
    auto compiled_whole = compile(whole, {.name = "whole"});
    Notes notes;
    {
      const Observing looking(current_device(), notes);
      for (int i = 0; i < 2; ++i) {
        const Tensor x = rows(kRows, i), label = classes(kRows);
        is_compiled ? compiled_part(x, label) : part(x, label);
        is_compiled ? compiled_whole(x, label) : whole(x, label);
      }
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> places;
    std::set<std::string> paths;
    std::vector<std::string> programs;
    for (const Told& t : notes.all) {
      const std::pair at(t.step, t.micro_batch);
      if (places.empty() || places.back() != at) places.push_back(at);
      if (t.what == "begins") programs.push_back(t.identity);
      EXPECT_EQ(t.stream, 0) << t.identity;  // no variable is away, so nothing goes beside
      if (t.op == "linear" && t.phase == Phase::Forward) {
        paths.insert(t.path);
        EXPECT_TRUE(t.identity.starts_with(t.path + "/linear")) << t.identity;
      }
    }
    using Places = decltype(places);
    EXPECT_EQ(places, (Places{{0, 0}, {0, 1}, {1, 0}, {1, 1}})) << is_compiled;
    EXPECT_EQ(paths, (std::set<std::string>{"0", "1"})) << is_compiled;
    EXPECT_EQ(programs, is_compiled ? (std::vector<std::string>{"part", "whole", "part", "whole"})
                                    : std::vector<std::string>());
  }
}

TEST(Observers, HearOfEagerCallsAndSeeTheirResults) {
  use_cpu();
  const Tensor a = from_floats({1, 2, 3}, {3}), b = from_floats({10, 20, 30}, {3});
  Notes notes;
  {
    const Observing looking(current_device(), notes);
    (a + b).to_vector();
  }
  a* b;  // nobody looks any more
  ASSERT_EQ(notes.all.size(), 2u);
  EXPECT_EQ(notes.all[0].op, "add");
  EXPECT_EQ(notes.all[0].identity, "/add");
  float first[3];
  ASSERT_EQ(notes.all[1].first.size(), sizeof first);
  std::memcpy(first, notes.all[1].first.data(), sizeof first);
  EXPECT_EQ(std::vector<float>(first, first + 3), (std::vector<float>{11, 22, 33}));
}

TEST(Observers, AreAListInTheOrderInWhichTheyCame) {
  use_cpu();
  std::vector<int> order;
  struct Numbered : Observer {
    Numbered(std::vector<int>& order, int number) : order(order), number(number) {}
    void before(const OpEvent&) override { order.push_back(number); }
    std::vector<int>& order;
    int number;
  };
  Numbered one(order, 1), two(order, 2), three(order, 3);
  const Tensor a = from_floats({1, 2}, {2});
  const Observing first(current_device(), one);
  {
    const Observing second(current_device(), two), third(current_device(), three);
    a + a;
  }
  a + a;
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 1}));
}

TEST(Observers, OneThatIsAttachedTwiceIsLetGoOnce) {
  use_cpu();
  Notes notes;
  const Tensor a = from_floats({1, 2}, {2});
  const Observing first(current_device(), notes);
  {
    const Observing second(current_device(), notes);
    a + a;
  }
  EXPECT_EQ(notes.count("before"), 2);
  a + a;
  EXPECT_EQ(notes.count("before"), 3);
}

// One that adds eagerly in its handler hears of no addition of its own.
TEST(Observers, AreNotToldOfWhatTheyComputeThemselves) {
  use_cpu();
  struct Adds : Observer {
    void before(const OpEvent&) override {
      ++calls;
      const Tensor one = from_floats({1}, {1});
      sum += (one + one).to_vector()[0];
    }
    int calls = 0;
    double sum = 0;
  } adds;
  const Tensor a = from_floats({1, 2}, {2});
  const Observing looking(current_device(), adds);
  EXPECT_EQ((a + a).to_vector(), (std::vector<double>{2, 4}));
  EXPECT_EQ(adds.calls, 1);
  EXPECT_EQ(adds.sum, 2);
}

// Its error comes out, and the step is whole: parameters, moments and counters are as without it.
TEST(Observers, OneThatThrowsLeavesNoHalfStep) {
  use_cpu();
  struct Throws : Observer {
    void after(const OpEvent& e) override {
      if (e.phase == Phase::Backward) throw std::runtime_error("enough");
    }
  } throws;
  const auto states_behind = [&](Observer* observer) {
    manual_seed(5);
    models::Mlp model({6, 10, 3});
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 0.02}, "O1:bf16");
    auto step = compile(
        [&, &net = net, &opt = opt](const Tensor& x, const Tensor& label) {
          return minimize(cross_entropy(net(x), label), opt);
        },
        {.name = "step"});
    for (int i = 0; i < 3; ++i) {
      std::optional<Observing> looking;
      if (observer && i == 1) looking.emplace(current_device(), *observer);
      if (looking)
        EXPECT_THROW(step(rows(kRows, i), classes(kRows)), std::runtime_error);
      else
        step(rows(kRows, i), classes(kRows)).loss();
    }
    return state_of(model, opt);
  };
  EXPECT_EQ(states_behind(&throws), states_behind(nullptr));
}

}  // namespace
}  // namespace aloft::e2e
