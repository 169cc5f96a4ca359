// observe::Session, and eager steps that are looked at: no bit of a step changes, whatever is
// looked at; an eager step has the names and the numbers of the compiled one.
#include "train/observe_session.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/folder_lock.h"
#include "e2e/refusal.h"
#include "e2e/tiny_gpt.h"
#include "e2e/training.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "numbers.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "optim/adamw.h"
#include "optim/muon.h"
#include "temporary_folder.h"

namespace aloft::e2e {
namespace {

using Json = nlohmann::ordered_json;

struct Looked {
  std::vector<double> losses;
  std::map<std::string, std::string> state;
  Json dump;  // of the last step
};

Json dump_of(const Path& folder, int step) {
  return Json::parse(read_file(folder / ("step" + std::to_string(step)) / "rank" / "dump.json"));
}

// Three steps of a small GPT-2, looked at or not.
Looked steps_of(Mode mode, const char* precision, int threads,
                std::optional<observe::SessionOptions> asked,
                const OptimizerSpec& optimizer = optim::AdamW{.lr = 1e-3, .weight_decay = 0.1}) {
  use_cpu();
  eager().clear_tape();
  omp_set_num_threads(threads);
  manual_seed(3);
  TinyGpt model;
  auto [net, opt] = amp::initialize(model, optimizer, precision);
  const auto one = [&, &net = net, &opt = opt](const Tensor& x, const Tensor& label) {
    return minimize(cross_entropy(net(x), label), opt);
  };
  auto compiled = compile(one, {.name = "step", .threads = threads});
  std::optional<observe::Session> session;
  if (asked) std::filesystem::remove_all(asked->out);
  if (asked) session.emplace(*asked).start();
  Looked run;
  for (int s = 0; s < 3; ++s) {
    const Batch b = sentences(s, 3);
    run.losses.push_back((mode == Mode::Eager ? one(b.x, b.label) : compiled(b.x, b.label)).loss());
    if (session) session->step();
  }
  if (session) session->stop();
  run.state = state_of(model, opt);
  if (asked) run.dump = dump_of(asked->out, 2);
  return run;
}

class Sessions : public testing::TestWithParam<const char*> {
 protected:
  TemporaryFolder folder_;
};

TEST_P(Sessions, ChangeNoBitInEitherMode) {
  for (const Mode mode : {Mode::Compiled, Mode::Eager}) {
    const Looked plain = steps_of(mode, GetParam(), 2, std::nullopt);
    Json first;
    for (const int threads : {1, 2, 4}) {
      const Looked seen = steps_of(mode, GetParam(), threads,
                                   observe::SessionOptions{.out = folder_.path(), .level = "mix"});
      EXPECT_EQ(seen.losses, plain.losses) << threads;
      EXPECT_EQ(seen.state, plain.state) << threads;
      if (first.is_null()) first = seen.dump;
      EXPECT_EQ(seen.dump, first) << threads;
    }
    EXPECT_GT(first.at("data").size(), 150u);
    EXPECT_EQ(first.at("level"), "mix");
  }
}

// Op level with what is inside attentions: the same in both modes, and no bit changes.
TEST_P(Sessions, SeeIntoAttentionsInEitherMode) {
  write_file_atomic(folder_.path() / "inside.toml",
                    "[probe]\ntask = \"statistics\"\nlevel = \"op\"\nattention = true\n");
  const observe::SessionOptions asked{.config = (folder_.path() / "inside.toml").string(),
                                      .out = (folder_.path() / "inside").string()};
  const Looked plain = steps_of(Mode::Compiled, GetParam(), 2, std::nullopt);
  const Looked compiled = steps_of(Mode::Compiled, GetParam(), 2, asked);
  const Looked eager = steps_of(Mode::Eager, GetParam(), 2, asked);
  EXPECT_EQ(compiled.state, plain.state);
  EXPECT_EQ(eager.state, plain.state);
  for (const char* op : {"attention_scores", "attention_probabilities"})
    for (const int block : {0, 1}) {
      const std::string entry = fmt::format("Torch.{}.{}.forward", op, block);
      ASSERT_TRUE(compiled.dump.at("data").contains(entry)) << entry;
      EXPECT_EQ(eager.dump.at("data").at(entry), compiled.dump.at("data").at(entry)) << entry;
      EXPECT_EQ(compiled.dump.at("taps").at(entry),
                Json({fmt::format("h.{}.attn/{}#0", block, op)}));
    }
}

// Op by op, beside a probe or alone.
TEST_P(Sessions, TimeStepsInEitherMode) {
  for (const Mode mode : {Mode::Compiled, Mode::Eager}) {
    const Looked plain = steps_of(mode, GetParam(), 2, std::nullopt);
    const std::string out = (folder_.path() / "timed").string();
    write_file_atomic(folder_.path() / "timed.toml",
                      "[profile]\nsteps = 2\nstart = 1\n[probe]\ntask = \"statistics\"\n");
    const Looked timed = steps_of(
        mode, GetParam(), 2,
        observe::SessionOptions{.config = (folder_.path() / "timed.toml").string(), .out = out});
    EXPECT_EQ(timed.losses, plain.losses);
    EXPECT_EQ(timed.state, plain.state);
    const Json file = Json::parse(read_file(Path(out) / "profile.json"));
    std::set<std::int64_t> steps;
    std::size_t products = 0;
    for (const Json& e : file.at("traceEvents")) {
      if (e.at("ph") != "X" || e.at("tid") == 0) continue;
      steps.insert(e.at("args").at("step").get<std::int64_t>());
      products += e.at("name") == "linear";
    }
    EXPECT_EQ(steps, (std::set<std::int64_t>{1, 2}));
    EXPECT_GT(products, 15u);
  }
}

// Records by entry, list and place.
std::map<std::string, Json> records_of(const Json& dump) {
  std::map<std::string, Json> all;
  for (const auto& [entry, lists] : dump.at("data").items())
    for (const auto& [list, records] : lists.items())
      for (const auto& [place, record] : records.items())
        all[entry + " " + list + " " + place] = record;
  return all;
}

TEST_P(Sessions, AnEagerStepHasTheNamesAndNumbersOfTheCompiledOne) {
  const observe::SessionOptions asked{.out = folder_.path()};
  const Json compiled = steps_of(Mode::Compiled, GetParam(), 2, asked).dump;
  const Json eager = steps_of(Mode::Eager, GetParam(), 2, asked).dump;
  const auto of_compiled = records_of(compiled), of_eager = records_of(eager);
  EXPECT_GT(of_compiled.size(), 150u);
  for (const auto& [name, record] : of_compiled) EXPECT_EQ(of_eager.at(name), record) << name;
  // The logits alone are never whole: what the head gives, and the model.
  for (const auto& [name, record] : of_eager)
    EXPECT_NE(of_compiled.contains(name),
              name.starts_with("Module.head.Linear.backward.0 input") ||
                  name.starts_with("Module.head.Linear.forward.0 output") ||
                  name.starts_with("Module.Module.backward.0 input") ||
                  name.starts_with("Module.Module.forward.0 output"))
        << name;
  // What an addition takes in is among them: the gradients of what norms take.
  for (const char* norm : {"h.0.ln_1", "h.0.ln_2", "h.1.ln_1", "h.1.ln_2", "ln_f"})
    EXPECT_TRUE(of_compiled.contains(fmt::format("Module.{}.LayerNorm.backward.0 output 0", norm)))
        << norm;
}

// The results of each op and phase, in order.
std::map<std::string, std::vector<Json>> results_of(const Json& dump) {
  std::map<std::string, std::vector<Json>> all;
  for (const auto& [entry, lists] : dump.at("data").items()) {
    const std::size_t first = entry.find('.') + 1, number = entry.find('.', first);
    const std::string op = entry.substr(first, number - first);
    for (const Json& record : lists.at("output"))
      all[op + entry.substr(entry.rfind('.'))].push_back(record);
  }
  return all;
}

// A compiled step never has some values whole, an eager one has all.
TEST_P(Sessions, AnEagerStepHasTheResultsOfTheCompiledOnesOps) {
  const observe::SessionOptions asked{.out = folder_.path(), .level = "op"};
  const auto compiled = results_of(steps_of(Mode::Compiled, GetParam(), 2, asked).dump);
  const auto eager = results_of(steps_of(Mode::Eager, GetParam(), 2, asked).dump);
  int compared = 0;
  for (const auto& [op, records] : compiled) {
    if (op.find("cross_entropy") != std::string::npos) continue;  // with the head, it is another op
    ASSERT_TRUE(eager.contains(op)) << op;
    auto next = eager.at(op).begin();
    for (const Json& record : records) {
      next = std::find(next, eager.at(op).end(), record);
      ASSERT_NE(next, eager.at(op).end()) << op << ": " << record;
      ++next;
      ++compared;
    }
  }
  EXPECT_GT(compared, 70);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Sessions, testing::Values("O0", "O2:bf16", "O2:fp16"));

class ASession : public testing::Test {
 protected:
  ASession() {
    use_cpu();
    eager().clear_tape();
    omp_set_num_threads(2);
  }
  std::string code_of(const std::function<void()>& call) const {
    try {
      call();
    } catch (const Error& e) {
      return std::string(e.code());
    }
    return "";
  }
  std::set<std::string> written() const {
    std::set<std::string> names;
    for (const auto& at : std::filesystem::directory_iterator(folder_.path()))
      names.insert(at.path().filename());
    return names;
  }
  static void step() {
    const Tensor x = numbers({2, 8});
    layer()(x);
  }
  static nn::Linear& layer() {
    static nn::Module root;
    static nn::Linear linear(root, "fc", 8, 8);
    return linear;
  }

  TemporaryFolder folder_;
};

// Where the update is made of several ops, it is the difference that is shown.
TEST_F(ASession, ShowsWhatAnyOptimizerAdds) {
  const observe::SessionOptions asked{.out = folder_.path()};
  for (const char* precision : {"O0", "O2:bf16"}) {
    const OptimizerSpec muon = optim::Muon{.lr = 1e-3};
    const auto compiled = records_of(steps_of(Mode::Compiled, precision, 2, asked, muon).dump);
    const auto eager = records_of(steps_of(Mode::Eager, precision, 2, asked, muon).dump);
    int updates = 0;
    for (const auto& [name, record] : compiled) {
      if (name.find("parameters_update") == std::string::npos) continue;
      ++updates;
      ASSERT_TRUE(eager.contains(name)) << name;
      EXPECT_EQ(eager.at(name), record) << name;
      EXPECT_GT(record.at("Norm").get<double>(), 0) << name;
    }
    EXPECT_GT(updates, 20);
  }
}

// A value that three modules read, and a sum of whose results.
struct Fork : nn::Module {
  nn::LayerNorm ln{*this, "ln", 8};
  nn::Linear q{*this, "q", 8, 8}, k{*this, "k", 8, 8}, v{*this, "v", 8, 8};
  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) {
      const Tensor h = ln(t);
      return square(q(h)) + gelu(k(h)) + 3 * v(h);
    });
  }
};

// O1 casts the value once for the three of them.
TEST_F(ASession, ShowsOfASharedInputThePartOfEachReader) {
  int runs = 0;
  const auto norms = [&](Mode mode, const std::string& precision) {
    manual_seed(3);
    Fork model;
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-3}, precision);
    const auto one = [&, &net = net, &opt = opt](const Tensor& x) {
      return minimize(mean(square(net(x))), opt);
    };
    auto compiled = compile(one, {.name = "step", .threads = 2});
    const Path out = folder_.path() / std::to_string(runs++);
    observe::Session session({.out = out});
    session.start();
    const Tensor x = numbers({4, 8});
    mode == Mode::Eager ? one(x) : compiled(x);
    session.step();
    session.stop();
    const Json data = dump_of(out, 0).at("data");
    std::map<std::string, double> all;
    for (const char* of : {"q", "k", "v"}) {
      const Json& back = data.at("Module." + std::string(of) + ".Linear.backward.0");
      all[of] = back.at("output").at(0).at("Norm").get<double>();
    }
    all["whole"] = data.at("Module.ln.LayerNorm.backward.0").at("input").at(0).at("Norm");
    return all;
  };
  const auto want = norms(Mode::Compiled, "O0");
  EXPECT_GT(want.at("whole"), 1.1 * want.at("k"));
  for (const Mode mode : {Mode::Compiled, Mode::Eager})
    for (const std::string precision :
         {"O1:bf16", "O1:fp16 loss_scale=dynamic(init=1024)", "O2:bf16"}) {
      const double scale = precision.starts_with("O1:fp16") ? 1024 : 1;
      for (const auto& [name, norm] : norms(mode, precision))
        EXPECT_NEAR(norm / scale, want.at(name), 0.02 * want.at(name)) << name << precision;
    }
}

TEST_F(ASession, TimesWithoutAProbe) {
  observe::Session session({.out = folder_.path(), .task = "none", .profile = 1});
  session.start();
  for (int s = 0; s < 5; ++s) {
    exp(numbers({4, 3}));
    EXPECT_EQ(session.profile().empty(), s < 4) << s;
    session.step();
  }
  session.stop();
  EXPECT_NE(session.profile().find("exp "), std::string::npos) << session.profile();
  EXPECT_TRUE(path_exists(folder_.path() / "profile.json"));
  EXPECT_FALSE(path_exists(folder_.path() / "step0"));
  EXPECT_EQ(code_of([&] { observe::Session({.task = "none"}); }), "E0872");
}

TEST_F(ASession, IsUsedInTurn) {
  observe::Session session({.out = folder_.path()});
  EXPECT_EQ(code_of([&] { session.step(); }), "E0870");
  EXPECT_EQ(code_of([&] { session.stop(); }), "E0870");
  session.start();
  EXPECT_EQ(code_of([&] { session.start(); }), "E0870");
  observe::Session other({.out = folder_.path()});
  EXPECT_EQ(code_of([&] { other.start(); }), "E0871");
  std::string of_thread;
  std::thread([&] { of_thread = code_of([&] { session.step(); }); }).join();
  EXPECT_EQ(of_thread, "E0871");
  EXPECT_EQ(code_of([&] { session.step(); }), "E0873");
  session.stop();
  other.start();
}

// Also between the steps that it looks at.
TEST_F(ASession, IsTheOnlyOneOfItsThread) {
  observe::Session session({.out = folder_.path(), .every = 2});
  session.start();
  step();
  session.step();
  observe::Session other({.out = folder_.path() / "other"});
  EXPECT_EQ(code_of([&] { other.start(); }), "E0871");
  session.stop();
  other.start();
  other.stop();
}

// A thread of its own, which goes on being looked at.
TEST_F(ASession, EndsOnAnotherThread) {
  std::thread([&] {
    auto session =
        std::make_unique<observe::Session>(observe::SessionOptions{.out = folder_.path()});
    session->start();
    step();
    std::thread([&] { session.reset(); }).join();
    step();
  }).join();
}

TEST_F(ASession, LooksAtTheStepsThatItIsAskedFor) {
  observe::Session session({.out = folder_.path(), .every = 2});
  step();  // of nobody
  session.start();
  for (int s = 0; s < 3; ++s) {
    step();
    session.step();
  }
  session.stop();
  step();
  session.start();
  step();
  session.step();
  EXPECT_EQ(session.steps(), 4);
  session.stop();
  EXPECT_EQ(written(), (std::set<std::string>{"missing.json", "step0", "step2", "written.json"}));
  const Json data = dump_of(folder_.path(), 2).at("data");
  EXPECT_EQ(data.size(), 1u);
  EXPECT_EQ(data.at("Module.fc.Linear.forward.0").at("input_args").size(), 1u);
}

// Steps of a longer dump would be taken for its own.
TEST_F(ASession, DoesNotWriteAmongStepsOfAnother) {
  const auto make = [&](int steps) {
    observe::Session session({.out = folder_.path()});
    session.start();
    for (int s = 0; s < steps; ++s) {
      step();
      session.step();
    }
  };
  make(3);
  EXPECT_EQ(code_of([&] { make(2); }), "E0811");
  std::filesystem::remove_all(folder_.path());
  make(2);
  EXPECT_EQ(written(), (std::set<std::string>{"missing.json", "step0", "step1"}));
}

TEST_F(ASession, SaysWhatItNeverSaw) {
  const auto said = [&](const observe::SessionOptions& asked, int steps) {
    testing::internal::CaptureStderr();
    {
      observe::Session session(asked);
      session.start();
      for (int s = 0; s < steps; ++s) {
        step();
        session.step();
      }
    }
    return testing::internal::GetCapturedStderr();
  };
  const auto out = [&](const char* name) { return (folder_.path() / name).string(); };
  EXPECT_NE(said({.out = out("none")}, 0).find("without a step()"), std::string::npos);
  EXPECT_NE(
      said({.out = out("late"), .at = {7}}, 2).find("step 7, and ends behind 2 steps: nothing"),
      std::string::npos);
  EXPECT_NE(said({.out = out("part"), .at = {0, 7}}, 2).find("step 7, and ends behind 2 steps"),
            std::string::npos);
  EXPECT_EQ(said({.out = out("all"), .at = {0, 1}}, 2), "");
}

TEST_F(ASession, ReadsAConfig) {
  const auto config = [&](const char* name, const std::string& text) {
    AtomicFile file(folder_.path() / name);
    file.write(text);
    file.commit_unflushed();
    return (folder_.path() / name).string();
  };
  const std::string out = folder_.path() / "from_config";
  const auto levels = [&](const observe::SessionOptions& asked) {
    std::filesystem::remove_all(out);
    observe::Session session(asked);
    session.start();
    step();
    session.step();
    session.stop();
    return dump_of(session.out(), 0).at("level").get<std::string>();
  };
  const char* toml_with_monitor = "[probe]\ntask = \"statistics\"\n[monitor]\non = true\n";
  const std::string toml = config("probe.toml", "[probe]\ntask = \"statistics\"\nlevel = \"op\"\n");
  EXPECT_EQ(levels({.config = toml, .out = out}), "L1");
  EXPECT_EQ(levels({.config = toml, .out = out, .level = "mix"}), "mix");
  const std::string json = config(
      "config.json", R"({"task": "statistics", "level": "mix", "dump_path": ")" + out + "\"}");
  EXPECT_EQ(levels({.config = json}), "mix");
  EXPECT_EQ(levels({.config = json, .level = "op"}), "L1");
  EXPECT_EQ(code_of([&] {
              observe::Session({.config = config("bad.toml", "[probe]\nlevels = \"op\"\n")});
            }),
            "E0710");
  EXPECT_EQ(code_of([&] { observe::Session({.config = config("bad.json", R"({"steps": 1})")}); }),
            "E0729");
  EXPECT_EQ(code_of([&] { observe::Session({.task = "acc_check"}); }), "E0872");
  const std::string said = what_of([&] { observe::Session({.task = "stats"}); });
  EXPECT_NE(said.find("SessionOptions"), std::string::npos) << said;
  EXPECT_EQ(said.find("--set"), std::string::npos) << said;  // a program has no command line
  const std::string tasks = config(
      "tasks.json", R"({"task": "tensor", "level": "L0", "tensor": {"file_format": "npy"}})");
  EXPECT_EQ(levels({.config = tasks, .out = out, .task = "statistics"}), "L0");
  EXPECT_EQ(
      code_of([&] { observe::Session({.config = config("monitored.toml", toml_with_monitor)}); }),
      "E0872");
  EXPECT_EQ(code_of([&] { observe::Session({.config = "absent.toml"}); }), "E0721");
}

TEST_F(ASession, WritesTensorsOfEitherMode) {
  for (const Mode mode : {Mode::Compiled, Mode::Eager}) {
    const Path out = folder_.path() / (mode == Mode::Eager ? "eager" : "compiled");
    const Looked run = steps_of(
        mode, "O2:bf16", 2,
        observe::SessionOptions{.out = out, .task = "tensor", .list = {"h.0.mlp.c_fc.", "ln_f"}});
    int files = 0;
    for (const auto& [name, record] : records_of(run.dump)) {
      const Json& one = record.is_array() ? record.at(0) : record;
      if (!one.contains("data_name")) continue;
      ++files;
      const Path file =
          out / "step2/rank/dump_tensor_data" / one.at("data_name").get<std::string>();
      EXPECT_TRUE(path_exists(file)) << file;
    }
    EXPECT_GE(files, 12);
  }
}

// Two steps of a product, in f16, whose second one leaves the type.
TEST_F(ASession, NamesTheFirstOpThatIsNotFinite) {
  for (const Mode mode : {Mode::Compiled, Mode::Eager}) {
    const Path out = folder_.path() / (mode == Mode::Eager ? "eager" : "compiled");
    const auto one = [](const Tensor& x) { return sum(gelu(x * 300.0)); };
    auto compiled = compile(one, {.name = "step", .threads = 2});
    observe::Session session({.out = out, .task = "overflow"});
    session.start();
    EXPECT_EQ(code_of([&] { session.step(); }), "E0873");
    for (const double scale : {1.0, 1e4}) {
      const Tensor x = cast(full(Shape{2, 3}, scale, DType::F32), DType::F16);
      mode == Mode::Eager ? one(x) : compiled(x);
      session.step();
    }
    session.stop();
    const Json file = Json::parse(read_file(out / "overflow.json"));
    EXPECT_EQ(file.at("task"), "overflow");
    EXPECT_EQ(file.at("steps"), 2);
    ASSERT_EQ(file.at("found").size(), 1u) << file;
    const Json& found = file.at("found").at(0);
    EXPECT_EQ(found.at("step"), 2);
    EXPECT_EQ(found.at("first").at("name"), "/mul#0");
    EXPECT_EQ(found.at("first").at("inf"), 6);
    // A session cannot make the step again: what it proposes is said not to have been tried.
    EXPECT_FALSE(found.contains("tried"));
    std::vector<std::string> changes;
    for (const Json& change : found.at("not_tried")) {
      EXPECT_FALSE(change.contains("works"));
      changes.push_back(change.at("change"));
    }
    ASSERT_EQ(changes.size(), 2u) << found;
    EXPECT_EQ(changes[0], "precision.deny_ops = [\"mul\"]");
    EXPECT_NE(changes[1].find("bf16"), std::string::npos);
    EXPECT_EQ(code_of([&] { observe::Session({.out = out, .task = "overflow"}).start(); }),
              "E0811");
  }
}

// A number that is handed in is no op's; one that an eager call made for a program is that call's.
TEST_F(ASession, NamesWhatComesFromOutsideOfAStep) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor given = full(Shape{2, 3}, nan, DType::F32);
  for (const Mode mode : {Mode::Compiled, Mode::Eager}) {
    const Path out = folder_.path() / (mode == Mode::Eager ? "eager" : "compiled");
    const auto one = [](const Tensor& x) { return sum(gelu(x)); };
    auto compiled = compile(one, {.name = "step", .threads = 2});
    observe::Session session({.out = out, .task = "overflow"});
    session.start();
    mode == Mode::Eager ? one(given) : compiled(given);
    session.step();
    const Tensor made = log(full(Shape{2, 3}, -1, DType::F32));
    mode == Mode::Eager ? one(made) : compiled(made);
    session.step();
    session.stop();
    const Json found = Json::parse(read_file(out / "overflow.json")).at("found");
    ASSERT_EQ(found.size(), 2u) << found;
    const Json &outside = found[0].at("first"), &inside = found[1].at("first");
    EXPECT_TRUE(outside.at("name").get<std::string>().starts_with("input:")) << outside;
    EXPECT_FALSE(outside.contains("op"));
    EXPECT_EQ(outside.at("nan"), 6);
    EXPECT_EQ(inside.at("op"), "log") << inside;
    EXPECT_EQ(inside.at("operands_are_finite"), true);
  }
}

TEST_F(ASession, HasItsFolderAlone) {
  observe::Session session({.out = folder_.path() / "out", .level = "op"});
  make_folder(folder_.path() / "out");
  {
    const FolderLock of_another(folder_.path() / "out" / "session.lock");
    EXPECT_EQ(code_of([&] { session.start(); }), "E0821");
  }
  session.start();
  EXPECT_TRUE(path_exists(folder_.path() / "out" / "session.lock"));
  session.stop();
  EXPECT_FALSE(path_exists(folder_.path() / "out"));  // nothing was written
  session.start();
  exp(numbers({4, 3}));
  session.step();
  session.stop();
  EXPECT_FALSE(path_exists(folder_.path() / "out" / "session.lock"));
}

TEST_F(ASession, WritesTheStructureOfItsFirstStep) {
  observe::Session session({.out = folder_.path(), .task = "structure"});
  session.start();
  for (int s = 0; s < 3; ++s) {
    step();
    session.step();
  }
  session.stop();
  EXPECT_EQ(written(), (std::set<std::string>{"missing.json", "step0"}));
  const Json dump = dump_of(folder_.path(), 0);
  EXPECT_EQ(dump.at("task"), "structure");
  EXPECT_FALSE(dump.at("data").at("Module.fc.Linear.forward.0").at("output").at(0).contains("Max"));
}

}  // namespace
}  // namespace aloft::e2e
