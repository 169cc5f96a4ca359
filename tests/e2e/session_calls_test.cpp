// A step of several calls of compiled functions, as a session sees it: they are numbered on, and
// what has one name and is another's is told apart, or said to be missing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "e2e/training.h"
#include "models/state_dict.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "numbers.h"
#include "observe/compare/comparison.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "optim/adamw.h"
#include "temporary_folder.h"
#include "train/observe_session.h"

namespace aloft::e2e {
namespace {

using Json = nlohmann::ordered_json;

Json dump_of(const Path& folder, int step) {
  return Json::parse(read_file(folder / ("step" + std::to_string(step)) / "rank" / "dump.json"));
}

// A value that three modules read.
struct Fork : nn::Module {
  nn::LayerNorm ln{*this, "ln", 8};
  nn::Linear q{*this, "q", 8, 8}, k{*this, "k", 8, 8};
  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) {
      const Tensor h = ln(t);
      return square(q(h)) + gelu(k(h));
    });
  }
};

class SessionCalls : public testing::Test {
 protected:
  SessionCalls() {
    use_cpu();
    eager().clear_tape();
    omp_set_num_threads(2);
  }
  TemporaryFolder folder_;
};

// Two functions that compute by the same names, one of which is called twice.
TEST_F(SessionCalls, NumbersCallsOfSeveralFunctions) {
  const Path out = folder_.path() / "out";
  const auto one = [](const Tensor& x) { return exp(gelu(x)); };
  auto f = compile(one, {.name = "f", .threads = 2}), g = compile(one, {.name = "g", .threads = 2});
  observe::Session session({.out = out, .task = "tensor", .level = "op"});
  session.start();
  f(numbers({4, 3}));
  g(numbers({2, 3}));
  f(numbers({5, 3}));
  session.step();
  session.stop();
  EXPECT_EQ(Json::parse(read_file(out / "missing.json")), Json::object());
  const Json dump = dump_of(out, 0);
  EXPECT_EQ(dump.at("data").size(), 6u);
  const int rows[] = {4, 2, 5};
  for (const char* op : {"gelu", "exp"})
    for (int call = 0; call < 3; ++call) {
      const std::string entry = fmt::format("Torch.{}.{}.forward", op, call);
      const Json& given = dump.at("data").at(entry).at("output").at(0);
      EXPECT_EQ(given.at("shape"), Json({rows[call], 3})) << entry;
      EXPECT_EQ(dump.at("taps").at(entry), Json({fmt::format("/{}#{}", op, call)}));
      const Path file = out / "step0/rank/dump_tensor_data" / given.at("data_name");
      EXPECT_TRUE(path_exists(file)) << file;
    }
  // What the second op of a call takes is what the first one of that call gives, in a file by its
  // own name.
  for (int call = 0; call < 3; ++call) {
    Json taken = dump.at("data").at(fmt::format("Torch.exp.{}.forward", call)).at("input_args")[0];
    Json given = dump.at("data").at(fmt::format("Torch.gelu.{}.forward", call)).at("output")[0];
    const Path folder = out / "step0/rank/dump_tensor_data";
    EXPECT_EQ(taken.at("data_name"), fmt::format("Torch.exp.{}.forward.input.0.pt", call));
    EXPECT_TRUE(std::filesystem::equivalent(folder / taken.at("data_name"),
                                            folder / given.at("data_name")));
    taken.erase("data_name"), given.erase("data_name");
    EXPECT_EQ(taken, given);
  }
}

// A step of several calls of compiled functions, or of the same eagerly: each updates, or all but
// the last add to gradients.
Json calls_of(Mode mode, int calls, const Path& out, bool are_micro_batches = false) {
  eager().clear_tape();
  manual_seed(3);
  Fork model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, "O0");
  if (are_micro_batches) opt.set_accumulation(calls);
  const auto loss = [&, &net = net](const Tensor& x) { return mean(square(net(x))); };
  const auto part = [&, &opt = opt](const Tensor& x) { return accumulate(loss(x), opt); };
  const auto last = [&, &opt = opt](const Tensor& x) { return minimize(loss(x), opt); };
  auto compiled_part = compile(part, {.name = "part", .threads = 2});
  auto compiled_last = compile(last, {.name = "last", .threads = 2});
  std::vector<Tensor> batches;
  for (int call = 0; call < calls; ++call) batches.push_back(numbers({4, 8}) + call);
  observe::Session session({.out = out, .level = "mix"});
  session.start();
  for (int call = 0; call < calls; ++call) {
    const Tensor& x = batches[static_cast<std::size_t>(call)];
    if (are_micro_batches && call + 1 < calls)
      mode == Mode::Eager ? part(x) : compiled_part(x);
    else
      mode == Mode::Eager ? last(x) : compiled_last(x);
  }
  session.step();
  session.stop();
  return dump_of(out, 0).at("data");
}

// Of each its calls, its parameters as it found them, and what each update adds.
TEST_F(SessionCalls, NumbersCallsOfAFunctionThatUpdates) {
  const Json once = calls_of(Mode::Compiled, 1, folder_.path() / "once");
  const Json data = calls_of(Mode::Compiled, 2, folder_.path() / "twice");
  for (const auto& [entry, content] : once.items())
    if (entry.find("parameters_grad") == std::string::npos)
      EXPECT_EQ(data.at(entry), content) << entry;
  const Json &first = data.at("Module.q.Linear.forward.0"),
             &second = data.at("Module.q.Linear.forward.1");
  EXPECT_NE(first.at("output"), second.at("output"));
  EXPECT_NE(first.at("parameters").at("weight"), second.at("parameters").at("weight"));
  EXPECT_TRUE(data.contains("Module.q.Linear.backward.1"));
  EXPECT_NE(data.at("Module.q.Linear.parameters_update.0").at("weight"),
            data.at("Module.q.Linear.parameters_update.1").at("weight"));
  EXPECT_FALSE(data.contains("Module.q.Linear.parameters_grad.1"));
  EXPECT_NE(data.at("Module.q.Linear.parameters_grad.0"),
            once.at("Module.q.Linear.parameters_grad.0"));
  const Json missing = Json::parse(read_file(folder_.path() / "twice" / "missing.json"));
  EXPECT_TRUE(missing.contains("parameter:q.weight.gradient")) << missing;
  EXPECT_FALSE(missing.contains("parameter:q.weight")) << missing;
  // The same eagerly, where a step has the parameters as it found them.
  const Json eager = calls_of(Mode::Eager, 2, folder_.path() / "eager");
  for (const auto& [entry, content] : eager.items())
    if (entry.starts_with("Module.") && !entry.ends_with("forward.1"))
      EXPECT_EQ(data.at(entry), content) << entry;
  const Json of_eager = Json::parse(read_file(folder_.path() / "eager" / "missing.json"));
  EXPECT_TRUE(of_eager.contains("parameter:q.weight.gradient")) << of_eager;
  // An op of the second call lies in the second call of its module.
  const Json construct =
      Json::parse(read_file(folder_.path() / "twice" / "step0" / "rank" / "construct.json"));
  EXPECT_EQ(construct.at("Torch.layer_norm.1.forward"), "Module.ln.LayerNorm.forward.1");
  // Entries of both calls stand in the order of the calls.
  std::vector<std::string> forward;
  for (const auto& [entry, content] : data.items())
    if (entry.starts_with("Module.") && entry.find(".forward.") != std::string::npos)
      forward.push_back(entry.substr(entry.size() - 1));
  EXPECT_EQ(fmt::format("{}", fmt::join(forward, "")), "00001111");
}

// Names of parameters are told apart by the variable.
TEST_F(SessionCalls, TellsModelsOfTheSameNamesApart) {
  Fork a, b;
  models::write_state(*b.q.weight, 0, std::vector<float>(64, 0.5f));
  const auto loss = [](Fork& model) {
    return [&model](const Tensor& x) { return mean(square(model(x))); };
  };
  auto f = compile(loss(a), {.name = "f", .threads = 2});
  auto g = compile(loss(b), {.name = "g", .threads = 2});
  observe::Session session({.out = folder_.path()});
  session.start();
  f(numbers({4, 8}));
  g(numbers({4, 8}));
  session.step();
  session.stop();
  EXPECT_EQ(Json::parse(read_file(folder_.path() / "missing.json")), Json::object());
  const Json data = dump_of(folder_.path(), 0).at("data");
  const Json &first = data.at("Module.q.Linear.forward.0").at("parameters"),
             &second = data.at("Module.q.Linear.forward.1").at("parameters");
  EXPECT_NE(first.at("weight"), second.at("weight#2"));
  EXPECT_FALSE(second.contains("weight"));
}

// Micro-batches add to one gradient, which the last of them leaves for the update.
TEST_F(SessionCalls, HasTheSumOfMicroBatches) {
  const Json compiled = calls_of(Mode::Compiled, 2, folder_.path() / "compiled", true);
  const Json eager = calls_of(Mode::Eager, 2, folder_.path() / "eager", true);
  const Json missing = Json::parse(read_file(folder_.path() / "compiled" / "missing.json"));
  EXPECT_FALSE(missing.contains("parameter:q.weight.gradient")) << missing;
  for (const char* entry : {"Module.q.Linear.forward.1", "Module.q.Linear.backward.1"})
    EXPECT_EQ(compiled.at(entry).at("output"), eager.at(entry).at("output")) << entry;
  for (const char* entry :
       {"Module.q.Linear.parameters_grad.0", "Module.q.Linear.parameters_update.0"}) {
    const double want = eager.at(entry).at("weight").at(0).at("Norm");
    EXPECT_NEAR(compiled.at(entry).at("weight").at(0).at("Norm"), want, 1e-6 * want) << entry;
  }
}

// What its loop says stands beside its values: gradients of a scaled loss are not taken for others.
TEST_F(SessionCalls, SaysWhatTheLoopSays) {
  const auto run = [&](Mode mode, const char* precision, const Path& out) {
    eager().clear_tape();
    manual_seed(3);
    Fork model;
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-3}, precision);
    const auto one = [&, &net = net, &opt = opt](const Tensor& x) {
      return minimize(mean(square(net(x))), opt);
    };
    auto compiled = compile(one, {.name = "step", .threads = 2});
    observe::Session session({.out = out});
    session.start();
    const Tensor x = numbers({4, 8});
    const double loss = (mode == Mode::Eager ? one(x) : compiled(x)).loss();
    session.step();
    session.stop();
    const Json training = dump_of(out, 0).at("training");
    EXPECT_EQ(training.at("loss").get<double>(), loss);
    EXPECT_NEAR(training.at("learning_rate").get<double>(), 1e-3, 1e-9);
    EXPECT_EQ(training.at("skipped"), false);
    EXPECT_EQ(training.at("micro_batches"), 1);
    EXPECT_GT(training.at("gradient_norm").get<double>(), 0);
    EXPECT_EQ(training.at("optimizer").at("kind"), "adamw");
    EXPECT_EQ(training.at("optimizer").at("betas"), Json({0.9, 0.999}));
    return training.at("loss_scale").get<double>();
  };
  for (const Mode mode : {Mode::Compiled, Mode::Eager}) {
    const Path folder = folder_.path() / (mode == Mode::Eager ? "eager" : "compiled");
    EXPECT_EQ(run(mode, "O0", folder / "whole"), 1);
    EXPECT_EQ(run(mode, "O2:fp16 loss_scale=dynamic(init=1024)", folder / "half"), 1024);
    const auto result = compare::compare_runs(
        {.npu = folder / "half", .bench = folder / "whole", .out = folder / "compared"});
    ASSERT_EQ(result.size(), 1u);
    EXPECT_FALSE(result[0].has_divergence) << result[0].sentence;
  }
}

// A step that ended in an exception is no part of the one behind it.
TEST_F(SessionCalls, DropsAStepThatDidNotEnd) {
  Fork model;
  observe::Session session({.out = folder_.path()});
  session.start();
  model(numbers({4, 8}));  // and an exception
  testing::internal::CaptureStderr();
  session.drop();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("step 0"), std::string::npos);
  mean(square(model(numbers({2, 8})))).backward();
  session.step();
  session.stop();
  EXPECT_EQ(session.steps(), 1);
  const Json data = dump_of(folder_.path(), 0).at("data");
  EXPECT_FALSE(data.contains("Module.q.Linear.forward.1"));
  EXPECT_EQ(data.at("Module.q.Linear.forward.0").at("output").at(0).at("shape"), Json({2, 8}));
}

TEST_F(SessionCalls, SaysThatAStepIsNotWritten) {
  Fork model;
  auto f = compile([&](const Tensor& x) { return model(x); }, {.name = "f", .threads = 2});
  const auto said_by_stop = [&](const observe::SessionOptions& asked, auto&& behind_the_step) {
    observe::Session session(asked);
    session.start();
    model(numbers({4, 8}));
    session.step();
    behind_the_step();
    testing::internal::CaptureStderr();
    session.stop();
    return testing::internal::GetCapturedStderr();
  };
  const auto out = [&](const char* name) { return (folder_.path() / name).string(); };
  const std::string what = "in step 1, without its step()";
  EXPECT_EQ(said_by_stop({.out = out("whole")}, [] {}).find("without"), std::string::npos);
  const auto unseen = said_by_stop({.out = out("0"), .at = {0}}, [&] { model(numbers({4, 8})); });
  EXPECT_EQ(unseen.find("without"), std::string::npos);
  for (const std::string task : {"statistics", "overflow"}) {
    const auto eager = said_by_stop({.out = out((task + "e").c_str()), .task = task}, [&] {
      model(numbers({4, 8}));
    });
    EXPECT_NE(eager.find(what), std::string::npos) << task << eager;
    const auto compiled = said_by_stop({.out = out((task + "c").c_str()), .task = task}, [&] {
      f(numbers({4, 8}));
    });
    EXPECT_NE(compiled.find(what), std::string::npos) << task << compiled;
  }
}

// As loops in torch's manner have it.
TEST_F(SessionCalls, HasTheSumThatBackwardLeaves) {
  Fork model;
  observe::Session session({.out = folder_.path()});
  session.start();
  for (int pass = 0; pass < 3; ++pass) mean(square(model(numbers({4, 8}) + pass))).backward();
  session.step();
  session.stop();
  double squares = 0;
  for (const double g : grad_of(model.q.weight).to_vector()) squares += g * g;
  const Json data = dump_of(folder_.path(), 0).at("data");
  const double norm = data.at("Module.q.Linear.parameters_grad.0").at("weight")[0].at("Norm");
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-6 * norm);
}

// What a backward pass meets another value for is said by name.
TEST_F(SessionCalls, SaysWhichGradientsAnEagerStepDoesNotShow) {
  Fork model;
  observe::Session session({.out = folder_.path()});
  session.start();
  const Tensor x = numbers({4, 8});
  {
    const NoGrad no_grad;
    model(x);
  }
  models::write_state(*model.q.weight, 0, std::vector<float>(64, 0.5f));
  mean(square(model(x))).backward();
  session.step();
  session.stop();
  const Json missing = Json::parse(read_file(folder_.path() / "missing.json"));
  const Json data = dump_of(folder_.path(), 0).at("data");
  ASSERT_TRUE(missing.contains("call:q#0.output.gradient")) << missing;
  EXPECT_NE(missing["call:q#0.output.gradient"].get<std::string>().find("no backward pass meets"),
            std::string::npos);
  EXPECT_FALSE(missing.contains("call:q#1.output.gradient")) << missing;
  // Of a parameter it is that of the value which the pass met.
  EXPECT_EQ(data.at("Module.q.Linear.parameters_grad.0").size(), 2u);
  EXPECT_FALSE(missing.contains("parameter:q.weight.gradient")) << missing;
}

}  // namespace
}  // namespace aloft::e2e
