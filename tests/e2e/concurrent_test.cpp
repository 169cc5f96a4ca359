// Several threads of one process, each with a model and a session of its own, at the same time:
// every one computes what it computes alone, to the bit. Models of equal shapes share prepared
// kernels, those of different shapes share the pool, the library and the tables of ops and names.
// `make tsan` runs this program under the thread sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "models/gpt2.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/pool2d.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "optim/adamw.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

constexpr std::int64_t kVocab = 67;

template <int kWidth>
struct Net : nn::Module {
  nn::Linear up{*this, "up", 24, kWidth}, down{*this, "down", kWidth, 10};
  nn::Dropout drop{*this, "drop", 0.1};
  Tensor operator()(const Tensor& x) { return down(drop(gelu(up(x)))); }
};

struct Images : nn::Module {
  nn::Conv2d first{*this, "first", 3, 8, 3, {.padding = 1}};
  nn::BatchNorm2d norm{*this, "norm", 8};
  nn::MaxPool2d pool{*this, "pool", 2};
  nn::Linear head{*this, "head", 8 * 4 * 4, 10};
  Tensor operator()(const Tensor& x) { return head(flatten(pool(relu(norm(first(x)))), 1)); }
};

models::Gpt2Config small_gpt() {
  models::Gpt2Config c;
  c.layers = 1;
  c.heads = 2;
  c.dim = 32;
  c.vocab = kVocab;
  c.context = 16;
  c.dropout = 0.1;
  return c;
}

struct Gpt : models::Gpt2 {
  Gpt() : Gpt2(small_gpt()) {}
};

Tensor floats(const Shape& shape, int step) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < shape.max_numel(); ++i)
    x.push_back(static_cast<float>((i * 37 + step * 11) % 29) / 29);
  return from_floats(x, shape);
}

Tensor labels(const Shape& shape, int step, int classes) {
  std::vector<std::int32_t> y;
  for (std::int64_t i = 0; i < shape.max_numel(); ++i)
    y.push_back(static_cast<std::int32_t>((i * 7919 + step * 31) % classes));
  return from_ints(y, shape);
}

const auto kLoss = [](auto& net, const Tensor& x, const Tensor& label) {
  return cross_entropy(net(x), label);
};

TrainOptions options(Mode mode, const char* precision, OptimizerSpec optimizer) {
  TrainOptions o;
  o.mode = mode;
  o.precision = precision;
  o.steps = 3;
  o.threads = 1;
  o.optimizer = std::move(optimizer);
  return o;
}

template <int kWidth>
Outcome train_net(Mode mode, const char* precision) {
  return train<Net<kWidth>>(
      options(mode, precision, optim::AdamW{.lr = 1e-2, .clip_norm = 1.0}),
      [](int step) {
        return Batch{floats({20, 24}, step), labels({20}, step, 10)};
      },
      kLoss);
}

Outcome train_images(Mode mode, const char* precision) {
  return train<Images>(
      options(mode, precision, optim::Momentum{.lr = 0.05}),
      [](int step) {
        return Batch{floats({6, 3, 8, 8}, step), labels({6}, step, 10)};
      },
      kLoss);
}

Outcome train_gpt(Mode mode, const char* precision) {
  return train<Gpt>(
      options(mode, precision, optim::AdamW{.lr = 1e-2}),
      [](int step) {
        return Batch{labels({2, 16}, step, kVocab), labels({2, 16}, step + 1, kVocab)};
      },
      kLoss);
}

using Work = Outcome (*)(Mode, const char*);
constexpr Work kWork[] = {train_net<48>, train_images, train_net<48>,
                          train_gpt,     train_images, train_net<40>};

class Concurrent : public testing::TestWithParam<std::tuple<Mode, const char*>> {};

TEST_P(Concurrent, EveryThreadComputesWhatItComputesAlone) {
  const Mode mode = std::get<0>(GetParam());  // clang 14 captures no structured bindings
  const char* precision = std::get<1>(GetParam());
  constexpr std::size_t kThreads = std::size(kWork);
  constexpr int kRounds = 3;
  use_cpu();
  std::vector<Outcome> alone(kThreads);
  for (std::size_t i = 0; i < kThreads; ++i)
    std::thread([&, i] { alone[i] = kWork[i](mode, precision); }).join();
  std::vector<std::vector<Outcome>> together(kThreads);
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      for (int round = 0; round < kRounds; ++round)
        together[i].push_back(kWork[i](mode, precision));
    });
  for (std::thread& t : threads) t.join();
  for (std::size_t i = 0; i < kThreads; ++i)
    for (const Outcome& got : together[i]) {
      EXPECT_EQ(got.losses, alone[i].losses) << i;
      EXPECT_EQ(got.grad_norms, alone[i].grad_norms) << i;
      EXPECT_EQ(differing(alone[i], got), std::vector<std::string>()) << i;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Concurrent,
                         testing::Combine(testing::Values(Mode::Eager, Mode::Compiled),
                                          testing::Values("O0", "O2:bf16")),
                         [](const auto& info) {
                           const bool eagerly = std::get<0>(info.param) == Mode::Eager;
                           const bool low = std::string(std::get<1>(info.param)) != "O0";
                           return std::string(eagerly ? "Eager" : "Compiled") + (low ? "Low" : "");
                         });

// Large enough that strips, bands and packed pieces are shared out among OpenMP's threads, too.
TEST(ConcurrentProducts, TeamsOfTwoKeepTheirBits) {
  use_cpu();
  const auto products = [] {
    omp_set_num_threads(2);
    std::vector<std::vector<float>> results;
    for (const DType type : {DType::F32, DType::BF16, DType::F16})
      for (const bool turned : {false, true}) {
        const Tensor a = cast(floats(turned ? Shape{96, 160} : Shape{160, 96}, 1), type);
        results.push_back(matmul(a, cast(floats({96, 200}, 2), type), turned).to_floats());
      }
    return results;
  };
  std::vector<std::vector<float>> alone;
  std::thread([&] { alone = products(); }).join();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) wrong += products() != alone;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// One program has one memory. A second caller is refused in words, never answered with garbage.
// Its numbers can be read; ops and gradients would meet another thread's tape.
TEST(TensorsOfAnotherThread, AreReadAndComputeNothing) {
  use_cpu();
  std::vector<Tensor> kept;
  std::vector<float> values;
  const auto compute = [&] {
    manual_seed(5);
    Net<3> model;
    const VariablePtr w = model.parameters()[0];
    kept = {from_floats({1, 2, 3}, {3}),
            sum(model(from_floats(std::vector<float>(24, 1), {1, 24}))),
            current_emitter().state(w)};
    values = kept[2].to_floats();
    eager().let_go_of(*w);
    w->buffer->write<float>(0, 1)[0] = 7;  // then the model goes
  };
  std::thread(compute).join();
  EXPECT_EQ(kept[0].to_floats(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(kept[2].to_floats(), values);
  const double total = kept[1].item();
  const auto expect_refused = [&](const auto& use, const char* whose) {
    try {
      use();
      FAIL() << whose;
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), "E0304");
      EXPECT_NE(std::string(e.what()).find(whose), std::string::npos) << e.what();
    }
  };
  const auto refuses_all = [&](const char* whose) {
    expect_refused([&] { relu(kept[0]); }, whose);
    expect_refused([&] { kept[0] + kept[0]; }, whose);
    expect_refused([&] { kept[1].backward(); }, whose);
  };
  refuses_all("an ended thread");
  // The next thread takes the session over; what the first left is as foreign to it.
  std::thread([&] {
    const Tensor own = from_floats({4}, {1});
    EXPECT_EQ(relu(own).item(), 4);
    EXPECT_EQ(kept[1].item(), total);
  }).join();
  EXPECT_EQ(kept[1].item(), total);
  std::latch computed(1), done(1);
  std::thread other([&] {
    compute();
    computed.count_down();
    done.wait();
  });
  computed.wait();
  refuses_all("another thread");
  done.count_down();
  other.join();
}

TEST(OneProgram, RefusesASecondCaller) {
  use_cpu();
  std::atomic<int> right = 0, refused = 0, other = 0;
  auto program =
      compile([](const Tensor& x) { return sum(matmul(x, x) * 2.0); }, {.partial_batches = false});
  std::vector<double> want;
  std::thread([&] {
    for (int step = 0; step < 4; ++step) want.push_back(program(floats({48, 48}, step)).item());
  }).join();
  std::vector<std::thread> threads;
  std::latch start(4);
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const Tensor x = floats({48, 48}, i);
      start.arrive_and_wait();
      for (int round = 0; round < 200; ++round) try {
          program(x);
          ++right;
        } catch (const UserError& e) {
          (e.code() == "E0330" ? refused : other) += 1;
        }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(other, 0);
  EXPECT_EQ(right + refused, 800);
  EXPECT_GT(right, 0);
  const double got = program(floats({48, 48}, 3)).item();
  EXPECT_EQ(got, want[3]);
}

std::vector<Tensor> doubled(const Tensor& x) { return {x * 2.0, sum(x)}; }

std::vector<std::vector<double>> values_of(const std::vector<Tensor>& list) {
  std::vector<std::vector<double>> values;
  for (const Tensor& t : list) values.push_back(t.to_vector());
  return values;
}

// What a call has returned is read while other threads call: each value is the call's own, or the
// call was refused. In turns, none is.
TEST(OneProgram, WhatACallReturnsIsItsOwn) {
  use_cpu();
  constexpr int kThreads = 4, kRounds = 100;
  for (const bool in_turns : {false, true}) {
    auto program = compile(doubled);
    std::mutex turn;
    std::atomic<int> wrong = 0, refused = 0, other = 0;
    std::latch start(kThreads);
    const auto call = [&](const Tensor& x) {
      std::unique_lock<std::mutex> lock(turn, std::defer_lock);
      if (in_turns) lock.lock();
      return program(x);
    };
    const auto work = [&](int i) {
      omp_set_num_threads(1);
      const Tensor x = floats({64, 64}, i);
      const auto want = values_of(doubled(x));
      start.arrive_and_wait();
      for (int right = 0; right < kRounds;) try {
          const std::vector<Tensor> got = call(x);
          wrong += values_of(got) != want;
          ++right;
        } catch (const UserError& e) {
          (e.code() == "E0330" ? refused : other) += 1;
          std::this_thread::yield();
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0) << in_turns;
    EXPECT_EQ(other, 0) << in_turns;
    EXPECT_TRUE(refused == 0 || !in_turns);
  }
}

// Those of the only caller so far lie in the program's memory, and stay there.
TEST(OneProgram, ResultsThatAreHeldStayWhereAnotherThreadBegins) {
  use_cpu();
  std::vector<Tensor> held;
  std::vector<std::vector<double>> want;
  {
    auto program = compile(doubled);
    held = program(floats({64, 64}, 0));
    want = values_of(held);
    std::atomic<bool> is_over = false;
    int wrong = 0;
    std::atomic<int> wrong_there = 0;
    std::thread other([&] {
      for (int step = 1; step < 20; ++step)
        wrong_there += values_of(program(floats({64, 64}, step))) !=
                       values_of(doubled(floats({64, 64}, step)));
      is_over = true;
    });
    while (!is_over) wrong += values_of(held) != want;
    other.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(wrong_there, 0);
    EXPECT_EQ(values_of(program(floats({64, 64}, 7))), values_of(doubled(floats({64, 64}, 7))));
  }
  EXPECT_EQ(values_of(held), want);
}

// --- one model

struct Wide : nn::Module {
  nn::Linear up{*this, "up", 16, 1024}, down{*this, "down", 1024, 1024};
  Tensor operator()(const Tensor& x) { return down(relu(up(x))); }
};

using Forward = std::function<Tensor(const Tensor&)>;

// One of the programs places the model's variables, and all work on them there.
TEST(OneModel, FirstCallsMeet) {
  use_cpu();
  constexpr int kThreads = 4;
  const Tensor x = floats({4, 16}, 1);
  for (int round = 0; round < 8; ++round) {
    Wide model;
    const NoGrad no_grad;
    const auto want = model(x).to_vector();
    std::vector<Forward> programs;  // the first is eager
    const Forward net = [&](const Tensor& in) { return model(in); };
    for (int i = 0; i < kThreads; ++i) programs.push_back(i == 0 ? net : compile(net));
    std::atomic<int> wrong = 0;
    std::latch start(kThreads);
    std::vector<std::thread> threads;
    for (const Forward& program : programs)
      threads.emplace_back([&] {
        omp_set_num_threads(1);
        const NoGrad nothing_recorded;
        const Tensor own = floats({4, 16}, 1);
        start.arrive_and_wait();
        for (int call = 0; call < 20; ++call) wrong += program(own).to_vector() != want;
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
    eager().update(model.down.weight, full(model.down.weight->type.shape, 0.25));
    const auto changed = model(x).to_vector();
    EXPECT_NE(changed, want);
    for (const Forward& program : programs) EXPECT_EQ(program(x).to_vector(), changed);
  }
}

// Does something once, in the middle of a run.
class Amid : public Observer {
 public:
  explicit Amid(std::function<void()> what) : what_(std::move(what)) {}
  void before(const OpEvent& e) override {
    if (e.program.empty()) return;  // the program's own run is meant
    if (what_) std::exchange(what_, nullptr)();
  }

 private:
  std::function<void()> what_;
};

// A step of another program amid one of `step`, on another thread: the code of what it throws.
template <class Step>
std::string code_amid(Step& step, const std::function<void()>& other) {
  std::string code = "not called";
  Amid amid([&] {
    std::thread([&] {
      try {
        other();
        code = "";
      } catch (const Error& e) {
        code = e.code();
      }
    }).join();
  });
  const Observing looking(step.programs().device(), amid);
  step(floats({8, 24}, 1), labels({8}, 1, 10));
  return code;
}

TEST(OneModel, AStepAmidAnotherIsRefused) {
  use_cpu();
  omp_set_num_threads(1);
  Net<48> one, two;
  const auto spec = optim::AdamW{.lr = 1e-2};
  auto [net, opt] = amp::initialize(one, spec, "O0");
  auto [net_two, opt_two] = amp::initialize(two, spec, "O0");
  const auto trains = [](auto& model, Optimizer& optimizer) {
    return [&](const Tensor& x, const Tensor& y) {
      return minimize(cross_entropy(model(x), y), optimizer);
    };
  };
  auto step = compile(trains(net, opt)), again = compile(trains(net, opt)),
       apart = compile(trains(net_two, opt_two));
  auto both = compile([&](const Tensor& x) { return one(x) + two(x); });
  both(floats({8, 24}, 1));  // it has placed the variables of both
  const auto call = [](auto& program) {
    return [&] { program(floats({8, 24}, 2), labels({8}, 2, 10)); };
  };
  for (auto* program : {&step, &again}) call (*program)();
  EXPECT_EQ(code_amid(step, call(again)), "E0330");
  EXPECT_EQ(code_amid(step, call(apart)), "");
  call(again)();
  const auto count = [](const VariablePtr& v) { return v->buffer->read_one<std::int64_t>(); };
  EXPECT_EQ(count(opt.applied), 5);
  EXPECT_EQ(count(opt_two.applied), 1);
}

// Also where a program moves for another thread, a step goes on from the last one.
TEST(OneModel, ThreadsTakeStepsInTurn) {
  use_cpu();
  omp_set_num_threads(1);
  std::map<std::string, std::string> alone;
  for (const bool on_two : {false, true}) {
    manual_seed(3);
    Wide model;
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, "O2:bf16");
    auto step = compile([&net = net, &opt = opt](const Tensor& x, const Tensor& y) {
      return minimize(cross_entropy(net(x), y), opt);
    });
    std::vector<StepResult> held;
    const auto one = [&](int i) {
      omp_set_num_threads(1);
      held.push_back(step(floats({8, 16}, i), labels({8}, i, 10)));
    };
    for (int i = 0; i < 4; ++i) {
      if (on_two && i % 2 == 1)
        std::thread(one, i).join();
      else
        one(i);
    }
    auto state = state_of(model, opt);
    if (!on_two)
      alone = std::move(state);
    else
      EXPECT_EQ(state, alone);
  }
}

TEST(OneProgram, DoesNotCallItself) {
  use_cpu();
  std::function<Tensor(const Tensor&)> again;
  auto program = compile([&](const Tensor& x) { return again ? again(x) : x + 1.0; });
  again = [&](const Tensor& x) { return program(x); };
  try {
    program(floats({2}, 1));
    FAIL() << "a program called itself";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), "E0330");
  }
  again = {};
  EXPECT_EQ(program(floats({1}, 0)).item(), 1.0);
}

}  // namespace
}  // namespace aloft::e2e
