// A second start of a program runs no pass, and nothing but the clock tells it from the first; what
// was kept for another program, or is no longer whole, is as if it were not there.
#include "frontend/plan_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/folder.h"
#include "e2e/tiny_gpt.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "ops/cross_entropy.h"
#include "optim/adamw.h"
#include "temporary_folder.h"

namespace aloft::e2e {
namespace {

using Strings = std::vector<std::string>;

std::string decisions_text(const std::vector<DecisionRecord>& decisions) {
  std::string text;
  for (const DecisionRecord& r : decisions) {
    const Decision& d = r.decision;
    text += r.op.str() + " " + r.path.str() + " " + std::string(name_of(r.phase)) + " ";
    text += d.applies ? "applies " : "";
    for (DType t : {d.compute, d.accumulate, d.store, d.cast_inputs.value_or(DType::Bool)})
      text += std::string(name_of(t)) + " ";
    text += std::string(text_of(d.reason)) + " " + std::string(name_of(r.form)) + "\n";
  }
  return text;
}

std::string passes_text(const std::vector<PassTime>& passes) {
  std::string text;
  for (const PassTime& t : passes) {
    text += std::string(t.pass) + (t.report.changed ? " changed" : "") + "\n";
    for (const Remark& r : t.report.remarks) text += "  " + r.node + ": " + text_of(r) + "\n";
  }
  return text;
}

// What readers can see of a program that was compiled and ran for a few steps.
struct Seen {
  bool is_from_cache = false;
  std::string graph, plan, signature, decisions, passes, taps;
  std::vector<double> pass_seconds, losses;
  std::map<std::string, std::string> state;

  void expect_equal(const Seen& o) const {
    EXPECT_EQ(graph, o.graph);
    EXPECT_EQ(plan, o.plan);
    EXPECT_EQ(signature, o.signature);
    EXPECT_EQ(decisions, o.decisions);
    EXPECT_EQ(passes, o.passes);
    EXPECT_EQ(taps, o.taps);
    EXPECT_EQ(losses, o.losses);
    EXPECT_TRUE(state == o.state);
  }
};

struct Asked {
  const char* precision = "O2:bf16";
  int threads = 2;
  Strings skip = {}, taps = {};
  double lr = 1e-3;
  Home moments = {};
};

Seen start(const Asked& asked = {}) {
  use_cpu();
  eager().clear_tape();
  manual_seed(3);
  TinyGpt model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = asked.lr}, asked.precision);
  for (const VariablePtr& v : opt.state())
    if (v->cls == StateClass::Optimizer) v->home = asked.moments;
  auto step = compile(
      [&, &net = net, &opt = opt](const Tensor& x, const Tensor& label) {
        return minimize(cross_entropy(net(x), label), opt);
      },
      {.name = "step",
       .threads = asked.threads,
       .passes = {.skip = asked.skip},
       .taps = asked.taps});
  Seen seen;
  for (int s = 0; s < 3; ++s) {
    const Batch b = sentences(s, 3);
    seen.losses.push_back(step(b.x, b.label).loss());
  }
  seen.state = state_of(model, opt);
  const Programs& programs = step.programs();
  seen.is_from_cache = programs.is_from_cache("step");
  seen.graph = print(programs.graph("step"));
  seen.plan = to_json(programs.plan());
  seen.signature = programs.plan().signature();
  seen.decisions = decisions_text(programs.decisions("step"));
  seen.passes = passes_text(programs.pass_times("step"));
  for (const PassTime& t : programs.pass_times("step")) seen.pass_seconds.push_back(t.seconds);
  for (const Tap& t : programs.taps("step")) seen.taps += t.name + " " + t.type.str() + "\n";
  for (const RefusedTap& t : programs.refused_taps("step")) seen.taps += t.name + ": " + t.why;
  return seen;
}

// A cache of each test's own.
class Cache : public testing::Test {
 protected:
  Cache() { use("plans"); }
  ~Cache() override { ::setenv("ALOFT_PLAN_CACHE", "off", 1); }
  void use(const std::string& folder) {
    ::setenv("ALOFT_PLAN_CACHE", (folder_ / folder).c_str(), 1);
  }
  std::vector<Path> entries() const { return list_folder(folder_ / "plans"); }
  TemporaryFolder folder_;
};

TEST_F(Cache, ASecondStartRunsNoPassAndIsEqual) {
  for (const char* precision : {"O0", "O1:fp16", "O2:bf16", "O3:bf16"}) {
    const Seen first = start({.precision = precision});
    EXPECT_FALSE(first.is_from_cache) << precision;
    EXPECT_FALSE(first.passes.empty());
    EXPECT_FALSE(first.decisions.empty());
    const Seen second = start({.precision = precision});
    EXPECT_TRUE(second.is_from_cache) << precision;
    second.expect_equal(first);
    // Measured by no clock of the second start: no pass ran in it.
    EXPECT_EQ(second.pass_seconds, first.pass_seconds);
  }
}

TEST_F(Cache, SwitchedOffCompilesAlike) {
  const Seen first = start(), kept = start();
  ::setenv("ALOFT_PLAN_CACHE", "off", 1);
  const std::vector<Path> before = entries();
  const Seen off = start({.lr = 1e-3});
  EXPECT_TRUE(kept.is_from_cache);
  EXPECT_FALSE(off.is_from_cache);
  off.expect_equal(kept);
  EXPECT_EQ(entries(), before);
}

TEST_F(Cache, TapsArePartOfWhatIsAsked) {
  const Asked tapped{.taps = {"*", "backward:*"}};  // the logits are computed for who names them
  const Seen first = start(tapped), second = start(tapped);
  EXPECT_FALSE(first.is_from_cache);
  EXPECT_TRUE(second.is_from_cache);
  EXPECT_NE(first.taps.find(": it is inside "), std::string::npos);  // refused ones, too
  second.expect_equal(first);
}

TEST_F(Cache, WhatDecidesAboutAProgramMisses) {
  start();
  EXPECT_FALSE(start({.precision = "O1:bf16"}).is_from_cache);
  EXPECT_FALSE(start({.threads = 1}).is_from_cache);
  EXPECT_FALSE(start({.skip = {"fuse-elementwise"}}).is_from_cache);
  EXPECT_FALSE(start({.taps = {"op:linear"}}).is_from_cache);
  EXPECT_FALSE(start({.lr = 2e-3}).is_from_cache);
  for (const char* device : {"sim:910B3", "sim:delays=1", "sim:memory=2GiB"}) {
    const DeviceScope on(open_device(device));
    EXPECT_FALSE(start().is_from_cache) << device;
    EXPECT_TRUE(start().is_from_cache) << device;
  }
  EXPECT_TRUE(start().is_from_cache);
}

// Programs with copies on streams of their own: nothing chooses a kernel for these.
TEST_F(Cache, CopiesAndWhereVariablesLieAreKept) {
  use_cpu();
  const DeviceScope on(open_device("sim"));
  const Seen at_hand = start();
  const Home homes[] = {{Space::Host}, {.shards = {&open_device("sim"), &open_device("cpu")}}};
  for (const Home& home : homes) {
    const Seen first = start({.moments = home}), second = start({.moments = home});
    EXPECT_FALSE(first.is_from_cache);
    EXPECT_TRUE(second.is_from_cache);
    EXPECT_NE(first.plan.find("\"copy\""), std::string::npos);
    EXPECT_NE(first.plan, at_hand.plan);
    second.expect_equal(first);
    EXPECT_EQ(second.losses, at_hand.losses);
    EXPECT_TRUE(second.state == at_hand.state);
  }
  EXPECT_TRUE(start().is_from_cache);
}

TEST_F(Cache, KeysTellEverythingApart) {
  use_cpu();
  Graph graph;
  graph.add_input("x", {DType::F32, {2, 3}});
  const PipelineOptions plain;
  const std::map<std::string, std::string> none, chosen{{"tile", "6"}};
  const auto key = [&](const Graph& g, const PipelineOptions& o, const auto& choices, int threads,
                       int homes = 1) {
    return cache_key({g, current_device(), threads, homes, o, choices});
  };
  const std::string usual = key(graph, plain, none, 2);
  EXPECT_EQ(usual.size(), 32u);
  EXPECT_EQ(key(graph, plain, none, 2), usual);
  EXPECT_NE(key(graph, plain, none, 3), usual);
  EXPECT_NE(key(graph, plain, none, 2, 2), usual);  // homes of each input
  EXPECT_NE(key(graph, plain, chosen, 2), usual);
  EXPECT_NE(key(graph, plain, std::map<std::string, std::string>{{"a", "1\nchoice b=2"}}, 2),
            key(graph, plain, std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}}, 2));
  EXPECT_NE(key(graph, {.skip = {"cse"}}, none, 2), usual);
  // Somebody looks at each pass: they must run.
  EXPECT_EQ(key(graph, {.dump = [](int, std::string_view, const Graph&) {}}, none, 2), "");
  Graph bound;
  bound.add_input("x", {DType::F32, {Dim::symbolic("B", 2), 3}});
  EXPECT_NE(key(bound, plain, none, 2), usual);
}

TEST_F(Cache, ALookAtEachPassRunsThem) {
  use_cpu();
  int passes = 0;
  const auto look = [&](int, std::string_view, const Graph&) { ++passes; };
  const auto f = [](const Tensor& x) { return x; };
  for (int i = 1; i <= 2; ++i) {
    auto call = compile(f, {.passes = {.dump = look}});
    call(from_floats(std::vector<float>{1, 2}, {2}));
    EXPECT_GE(passes, 5 * i);
  }
}

std::string flipped(std::string bytes, std::size_t at) {
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ 0x10);
  return bytes;
}

TEST_F(Cache, WhatIsDamagedIsIgnoredAndReplaced) {
  const Seen first = start();
  ASSERT_EQ(entries().size(), 1u);
  const Path file = entries()[0];
  const std::string whole = read_file(file);
  std::vector<std::size_t> places = {0, 20, 30, 56, 57, 60, 73, 74, 76, whole.size() - 1};
  for (std::size_t i = 1; i < 8; ++i) places.push_back(whole.size() * i / 8);
  for (const std::size_t at : places) {
    TemporaryFolder::put(file, flipped(whole, at));
    const Seen again = start();
    EXPECT_FALSE(again.is_from_cache) << "byte " << at;
    again.expect_equal(first);
    EXPECT_TRUE(program_in(read_file(file), file.stem().string())) << "byte " << at;
  }
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{40}, whole.size() / 2, whole.size() - 1}) {
    TemporaryFolder::put(file, whole.substr(0, bytes));
    EXPECT_FALSE(start().is_from_cache) << bytes << " bytes";
    EXPECT_TRUE(start().is_from_cache);
  }
  TemporaryFolder::put(file, whole + "x");
  EXPECT_FALSE(start().is_from_cache);
}

TEST_F(Cache, EveryBitOfAnEntryCounts) {
  const std::string key(32, 'a');
  const std::string entry = entry_text(key, "some text");
  EXPECT_EQ(program_in(entry, key), "some text");
  EXPECT_FALSE(program_in(entry, std::string(32, 'b')));
  for (std::size_t i = 0; i < entry.size(); ++i) {
    EXPECT_FALSE(program_in(entry.substr(0, i), key)) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string harmed = entry;
      harmed[i] = static_cast<char>(harmed[i] ^ (1 << bit));
      const auto text = program_in(harmed, key);
      // The hash is read in either case of its letters.
      EXPECT_TRUE(!text || *text == "some text") << i;
    }
  }
}

// Whole and rightly hashed, and not what is asked for: an entry of another program under the key.
TEST_F(Cache, WhatBelongsToAnotherProgramIsIgnored) {
  const Seen first = start();
  const Path mine = entries()[0];
  use("others");
  start({.precision = "O0"});
  const std::vector<Path> others = list_folder(folder_ / "others");
  ASSERT_EQ(others.size(), 1u);
  const std::string foreign = read_file(others[0]);
  const auto text = program_in(foreign, others[0].stem().string());
  ASSERT_TRUE(text);
  use("plans");
  TemporaryFolder::put(mine, foreign);
  EXPECT_FALSE(start().is_from_cache);
  TemporaryFolder::put(mine, entry_text(mine.stem().string(), *text));
  const Seen again = start();  // its variables have other types
  EXPECT_FALSE(again.is_from_cache);
  again.expect_equal(first);
}

using Edit = std::function<void(nlohmann::json& program, nlohmann::json& state)>;

// The entry with its Plan edited, and all lengths and hashes right again.
std::string rewritten(const std::string& entry, const std::string& key, const Edit& edit) {
  std::string_view rest = program_in(entry, key).value();
  std::string text;
  for (int at = 0; !rest.empty(); ++at) {
    const std::size_t line = rest.find('\n'), bytes = std::stoul(std::string(rest));
    std::string part(rest.substr(line + 1, bytes));
    rest.remove_prefix(line + 1 + bytes);
    if (at == 1) {
      auto plan = nlohmann::json::parse(part);
      edit(plan["programs"][0], plan["state"]);
      part = plan.dump();
    }
    text += std::to_string(part.size()) + "\n" + part;
  }
  return entry_text(key, text);
}

// The hash is for accidents; whoever writes it anew makes no call that its kernel cannot bear.
TEST_F(Cache, CallsThatNoCompilerMadeAreIgnored) {
  const Seen first = start();
  const Path file = entries()[0];
  const std::string whole = read_file(file), key = file.stem().string();
  const auto first_call = [](nlohmann::json& p, std::size_t operands) -> nlohmann::json& {
    for (auto& i : p["instructions"])
      if (i["in"].size() >= operands && !i.contains("copy")) return i;
    throw std::runtime_error("no call of so many operands");
  };
  const auto array = nlohmann::json::array();
  const std::pair<const char*, Edit> edits[] = {
      {"no operands", [&](auto& p, auto&) { first_call(p, 1)["in"] = array; }},
      {"operands null", [&](auto& p, auto&) { first_call(p, 1)["in"] = nullptr; }},
      {"an operand fewer", [&](auto& p, auto&) { first_call(p, 2)["in"].erase(1); }},
      {"an operand more",
       [&](auto& p, auto&) {
         auto& in = first_call(p, 1)["in"];
         in.push_back(nlohmann::json(in[0]));
       }},
      {"no results", [&](auto& p, auto&) { first_call(p, 1)["out"] = array; }},
      {"a result more",
       [&](auto& p, auto&) {
         first_call(p, 1)["out"].push_back(p["instructions"].back()["out"][0]);
       }},
      {"another length", [&](auto& p, auto&) { p["symbols"][0] = "cpu"; }},
      {"a lower bound", [&](auto& p, auto&) { p["bounds"][0] = 2; }},
      {"an unknown op", [&](auto& p, auto&) { first_call(p, 1)["op"] = "nothing"; }},
      {"an output of another name", [&](auto& p, auto&) { p["outputs"][0]["name"] = "other"; }},
      {"an output that is a tap", [&](auto& p, auto&) { p["outputs"][0]["tap"] = true; }},
      {"an output twice",
       [&](auto& p, auto&) { p["outputs"].push_back(nlohmann::json(p["outputs"][0])); }},
      {"a variable of another class", [&](auto&, auto& state) { state[0]["class"] = "buffer"; }},
  };
  TemporaryFolder::put(file, rewritten(whole, key, [](auto&, auto&) {}));
  EXPECT_TRUE(start().is_from_cache);
  for (const auto& [name, edit] : edits) {
    TemporaryFolder::put(file, rewritten(whole, key, edit));
    const Seen again = start();
    EXPECT_FALSE(again.is_from_cache) << name;
    again.expect_equal(first);
  }
}

TEST_F(Cache, EntriesAreRegularFiles) {
  const Seen first = start();
  const Path file = entries()[0];
  for (const char* other : {"/dev/zero", "/dev/full", "/dev/null", "/", "/nowhere"}) {
    std::filesystem::remove(file);
    std::filesystem::create_symlink(other, file);
    const Seen again = start();
    EXPECT_FALSE(again.is_from_cache) << other;
    again.expect_equal(first);
  }
}

TEST_F(Cache, AFolderThatCannotBeWrittenIsNoFailure) {
  TemporaryFolder::put(folder_ / "plans", "a file is in the way");
  const Seen first = start(), second = start();
  EXPECT_FALSE(first.is_from_cache);
  EXPECT_FALSE(second.is_from_cache);
  second.expect_equal(first);
}

TEST_F(Cache, StaysWithinItsBytes) {
  use_cpu();
  const auto compiled = [](const char* name) {
    Graph g;
    g.name = name;
    const ValueId x = g.add_input("x", {DType::F32, {4}});
    g.set_output("y", x);
    PassContext context;
    context.form = Form::Cast;
    context.choose = chooser(current_device());
    return compile_graph(std::move(g), context, {});
  };
  const std::size_t bytes = entry_text(std::string(32, 'k'), text_of(compiled("g"), 1)).size();
  const PlanCache cache(folder_ / "small", 3 * bytes + bytes / 2);
  const auto key = [](int i) { return std::string(31, '0') + static_cast<char>('0' + i); };
  const auto hours_ago = [&](int i, int hours) {
    std::filesystem::last_write_time(
        cache.path_of(key(i)),
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  for (int i = 0; i < 3; ++i) {
    cache.keep(key(i), compiled("g"), 1);
    hours_ago(i, 10 - i);
  }
  const std::string foreign[] = {"foreign.txt", "mine.plan", std::string(32, 'z') + ".plan"};
  for (const std::string& name : foreign)
    TemporaryFolder::put(folder_ / "small" / name, std::string(10 * bytes, 'x'));
  ASSERT_TRUE(cache.find(key(0)));  // used now: the second is the oldest
  cache.keep(key(3), compiled("g"), 1);
  EXPECT_TRUE(cache.find(key(0)));
  EXPECT_FALSE(cache.find(key(1)));
  EXPECT_TRUE(cache.find(key(2)));
  EXPECT_TRUE(cache.find(key(3)));
  for (const std::string& name : foreign)
    EXPECT_TRUE(path_exists(folder_ / "small" / name)) << name;
  const PlanCache tiny(folder_ / "tiny", bytes / 2);
  tiny.keep(key(0), compiled("g"), 1);
  EXPECT_FALSE(tiny.find(key(0)));
}

TEST_F(Cache, ThreadsShareIt) {
  const Seen alone = start();
  use("shared");
  std::vector<Seen> seen(6);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < seen.size(); ++i)
    threads.emplace_back([&seen, i] { seen[i] = start({.lr = i % 2 ? 1e-3 : 3e-3}); });
  for (std::thread& t : threads) t.join();
  for (std::size_t i = 1; i < seen.size(); i += 2) seen[i].expect_equal(alone);
  EXPECT_TRUE(start().is_from_cache);
  EXPECT_TRUE(start({.lr = 3e-3}).is_from_cache);
}

}  // namespace
}  // namespace aloft::e2e
