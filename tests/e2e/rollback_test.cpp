// Runs that go back to a checkpoint: past data that ruins a step, to the same bits whether they
// were stopped on the way or not, and to an end where going back does not help.
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <regex>
#include <thread>
#include <utility>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_folder.h"
#include "e2e/refusal.h"
#include "e2e/small_run.h"
#include "e2e/table_run.h"
#include "run/listener.h"
#include "sources/source_kind.h"
#include "start_program.h"

namespace aloft::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A table of 96 examples, 24 steps of an epoch, of which some have a feature that fp16
// does not hold.
class Rollback : public SmallRun, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    SmallRun::SetUp();
    folder_.put(folder_ / "small.toml", kTableRecipe);
    write_table("1e6");
  }
  void write_table(const std::string& odd, int every = 31) const {
    folder_.put(folder_ / "table.csv", table_with(odd, every));
  }
  // Batch norm, and one example that fp16 does not hold: the step that meets it has made its
  // running statistics infinite by the time that it is known. Of images: data.shape=[1, 4, 4].
  void use_batch_norm(const char* odd = "1e6") const {
    std::string table;
    for (int i = 0; i < 96; ++i) {
      for (int k = 0; k < 16; ++k)
        table += (i == 40 && k == 3 ? odd : std::to_string(0.1 * ((i * 5 + k * 3) % 11))) + ",";
      table += std::to_string(i % 3) + "\n";
    }
    folder_.put(folder_ / "table.csv", table);
    std::string recipe = kTableRecipe;
    const std::string mlp = "family = \"mlp\"\nhidden = [8]\n";
    recipe.replace(recipe.find(mlp), mlp.size(), "family = \"resnet\"\nwidth = 2\nblocks = [1]\n");
    folder_.put(folder_ / "small.toml", recipe);
  }
  std::vector<std::string> in_mode(std::vector<std::string> set = {}) const {
    set.push_back(std::string("train.mode=") + GetParam());
    return set;
  }
  std::vector<json> rollbacks(const std::string& out) const {
    std::vector<json> found;
    for (const json& line : metrics(out))
      if (line.contains("rollback")) found.push_back(line);
    return found;
  }
  void expect_same_run(const std::string& a, const std::string& b) const {
    expect_same_state(a, b, "step-000024");
    EXPECT_EQ(numbers(a), numbers(b));
    const auto meta = [&](const std::string& out) {
      return read_manifest(checkpoint(out, "step-000024")).meta;
    };
    EXPECT_EQ(meta(a).data_position, meta(b).data_position);
    EXPECT_EQ(meta(a).rollbacks, meta(b).rollbacks);
    EXPECT_EQ(meta(a).recent_losses, meta(b).recent_losses);
  }
  // metrics() without the rate of examples, which a clock decides.
  std::vector<json> numbers(const std::string& out) const {
    std::vector<json> lines = metrics(out);
    for (json& line : lines) line.erase("examples_per_s");
    return lines;
  }
};

TEST_P(Rollback, ARunGoesPastWhatIsNotFinite) {
  const auto set = in_mode({"train.on_nonfinite=rollback"});
  const TrainResult result = run("back", set);
  ASSERT_GE(result.rollbacks.size(), 2u);
  EXPECT_EQ(result.last_step, 24);
  EXPECT_EQ(result.skipped, 0);
  const std::vector<json> lines = rollbacks("back");
  ASSERT_EQ(lines.size(), result.rollbacks.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const aloft::Rollback& r = result.rollbacks[i];
    EXPECT_EQ(lines[i]["rollback"], i + 1);
    EXPECT_EQ(lines[i]["step"], r.to);
    EXPECT_EQ(lines[i]["from_step"], r.from);
    EXPECT_LT(r.to, r.from);
    EXPECT_EQ(r.to % 4, 0);  // there are no other checkpoints
    EXPECT_GE(r.data_to - r.data_from, static_cast<std::uint64_t>(4 * (r.from - r.to)));
    EXPECT_TRUE(r.reason.starts_with("the loss is NaN (examples ")) << r.reason;
    EXPECT_EQ(lines[i]["reason"], r.reason);
    // Those that fp16 does not hold.
    EXPECT_TRUE(std::regex_search(r.reason, std::regex("[ (](7|38|69)(,| of table.csv)")))
        << r.reason;
  }
  // Every step has one line, and a finite loss.
  std::int64_t step = 0;
  for (const json& line : metrics("back"))
    if (line.contains("loss")) {
      EXPECT_EQ(line["step"], ++step);
      EXPECT_TRUE(line["loss"].is_number());
      EXPECT_FALSE(line["skipped"].get<bool>());
    }
  EXPECT_EQ(step, 24);
  // What is passed over is handed out to nobody: the data ends that much later.
  const CheckpointMeta meta = read_manifest(checkpoint("back", "step-000024")).meta;
  EXPECT_EQ(meta.data_position, 24 * 4 + passed_over(meta.rollbacks));
  const json record = json::parse(read_file(folder_ / "back" / "run.json", 1 << 20));
  EXPECT_EQ(record["result"]["rollbacks"].size(), lines.size());
}

// At every checkpoint of the run, as a crash behind it leaves it; the start is one.
TEST_P(Rollback, GoingOnBehindOneIsNeverHavingStopped) {
  const auto set = in_mode({"train.on_nonfinite=rollback"});
  const TrainResult straight = run("straight", set);
  ASSERT_GE(straight.rollbacks.size(), 2u);
  for (int newest = 0; newest < 24; newest += 4) {
    const std::string out = "crashed" + std::to_string(newest);
    fs::copy(folder_ / "straight", folder_ / out, fs::copy_options::recursive);
    for (const auto& entry : fs::directory_iterator(folder_ / out / "checkpoints"))
      if (step_in_name(entry.path().filename().string()).value_or(0) > newest)
        fs::remove_all(entry.path());
    run(out, set, true);
    expect_same_run(out, "straight");
  }
}

// The manifest is the whole decision: with the one of before the run decides again, and where the
// record knows nothing of it yet, it is told.
TEST_P(Rollback, AKillInTheMiddleOfOneCostsNothing) {
  const auto set = in_mode({"train.on_nonfinite=rollback"});
  const TrainResult straight = run("straight", set);
  ASSERT_GE(straight.rollbacks.size(), 1u);
  const aloft::Rollback first = straight.rollbacks.front();
  // The run as it was when it met the trouble: stopped there, killed before it had decided, when
  // what it left was still there, and when that was removed.
  for (const std::string out : {"stopped", "undecided", "cut", "decided"}) {
    auto until = set;
    until.push_back("train.steps=" + std::to_string(first.from - 1));
    run(out, until);
    if (out == "undecided" || out == "decided")
      for (const auto& entry : fs::directory_iterator(folder_ / out / "checkpoints"))
        if (step_in_name(entry.path().filename().string()).value_or(0) > first.to)
          fs::remove_all(entry.path());
    if (out == "cut" || out == "decided") {
      CheckpointFolder folder(folder_ / out / "checkpoints");
      StoredCheckpoint to =
          *folder.newest([&](const CheckpointMeta& m) { return m.step == first.to; });
      EXPECT_EQ(folder.newest()->meta.step > first.to, out == "cut");
      to.meta.rollbacks = {first};
      to.meta.data_position = first.data_to;
      if (out == "cut")
        rewrite_manifest(to.path, to.meta);
      else
        folder.go_back(to, to.meta);
    }
    run(out, set, true);
    expect_same_run(out, "straight");
  }
}

TEST_P(Rollback, KillsAtAnyMomentCostNothing) {
  const auto set = in_mode({"train.on_nonfinite=rollback"});
  run("straight", set);
  std::vector<std::string> words = {
      ALOFT_PROGRAM, "train",  folder_ / "small.toml", "--out", folder_ / "killed",
      "--resume",    "--quiet"};
  for (const std::string& s : set) words.insert(words.end(), {"--set", s});
  int status = 0;
  for (int late = 0; late < 12; ++late) {
    const pid_t child = start_program(words);
    while (!fs::exists(folder_ / "killed" / "checkpoints" / "step-000000") &&
           waitpid(child, &status, WNOHANG) == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * late));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  ASSERT_GT(waitpid(start_program(words), &status, 0), 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  expect_same_run("killed", "straight");
}

TEST_P(Rollback, ASpikeIsOneBesideTheStepsBefore) {
  write_table("1e4");
  const auto set =
      in_mode({"train.on_spike=rollback", "train.spike_window=3", "train.spike_factor=5",
               "train.checkpoint_every=2", "data.validation=0.25", "train.eval_every=6"});
  const TrainResult result = run("spikes", set);
  ASSERT_GE(result.rollbacks.size(), 1u);
  for (const aloft::Rollback& r : result.rollbacks)
    EXPECT_NE(r.reason.find("the median of the last 3 steps"), std::string::npos) << r.reason;
  EXPECT_TRUE(run("ignored", in_mode({"data.validation=0.25"})).rollbacks.empty());
  for (const int newest : {0, 8, 14, 22}) {
    const std::string out = "crashed" + std::to_string(newest);
    fs::copy(folder_ / "spikes", folder_ / out, fs::copy_options::recursive);
    for (const auto& entry : fs::directory_iterator(folder_ / out / "checkpoints"))
      if (step_in_name(entry.path().filename().string()).value_or(0) > newest)
        fs::remove_all(entry.path());
    run(out, set, true);
    expect_same_run(out, "spikes");
  }
}

// Micro-batches of a step are passed over together; a run that counts in epochs makes as many steps
// as one that was handed out no bad data, stopped on the way or not.
TEST_P(Rollback, WithMicroBatchesAndEpochsItMakesItsSteps) {
  const auto set = in_mode(
      {"train.on_nonfinite=rollback", "train.accumulate=2", "train.batch=2", "train.epochs=1"});
  const TrainResult straight = run("straight", set);
  ASSERT_GE(straight.rollbacks.size(), 1u);
  EXPECT_EQ(straight.last_step, 24);
  for (const aloft::Rollback& r : straight.rollbacks) EXPECT_EQ((r.data_to - r.data_from) % 4, 0u);
  fs::copy(folder_ / "straight", folder_ / "crashed", fs::copy_options::recursive);
  fs::remove_all(checkpoint("crashed", "step-000024"));
  run("crashed", set, true);
  expect_same_run("crashed", "straight");
}

// Every example is of that kind: each return goes further back, and the last one says so.
TEST_P(Rollback, OneThatNeverHelpsEndsTheRun) {
  write_table("1e6", 8);
  const auto set =
      in_mode({"train.on_nonfinite=rollback", "train.rollbacks=3", "train.checkpoint_every=1"});
  std::string said;
  try {
    run("hopeless", set);
  } catch (const DivergedError& e) {
    EXPECT_EQ(e.code(), "E0835");
    said = e.what();
  }
  EXPECT_NE(said.find("3 times in a row"), std::string::npos) << said;
  EXPECT_FALSE(rollbacks("hopeless").empty());
  // What is kept is healthy, and knows of the returns.
  CheckpointFolder folder(folder_ / "hopeless" / "checkpoints");
  const auto kept = folder.newest_healthy();
  ASSERT_TRUE(kept);
  EXPECT_FALSE(kept->meta.rollbacks.empty());
  EXPECT_THROW(run("hopeless", set, true), DivergedError);
}

// Losses that rise from step to step, and overflow at last: the states on the way are saved with a
// mark. What the run ends with says that they are there.
TEST_P(Rollback, WhatIsLeftWhereItEndsIsNamed) {
  std::string recipe = kTableRecipe;
  const std::size_t begin = recipe.find("level ="), end = recipe.find("[optimizer]");
  recipe.replace(begin, end - begin, "level = \"O0\"\n");
  folder_.put(folder_ / "small.toml", recipe);
  write_table("0.5");
  std::string said;
  try {
    run("rising", in_mode({"train.on_nonfinite=rollback", "train.rollbacks=1",
                           "task.kind=regression", "data.outputs=1", "train.checkpoint_every=1",
                           "optimizer.kind=sgd", "optimizer.lr=100", "optimizer.clip_norm=0"}));
    FAIL() << "it ends";
  } catch (const DivergedError& e) {
    EXPECT_EQ(e.code(), "E0835");
    said = e.what();
  }
  int marked = 0;
  for (const StoredCheckpoint& c : CheckpointFolder(folder_ / "rising" / "checkpoints").whole()) {
    if (c.meta.healthy()) continue;
    ++marked;
    const std::string name = "step " + std::to_string(c.meta.step) + " (not healthy)";
    EXPECT_NE(said.find(name), std::string::npos) << name << "\n" << said;
  }
  EXPECT_GE(marked, 1) << said;
}

TEST_P(Rollback, AStopNamesTheStepAndAResumeGoesOnBehindIt) {
  const auto set = in_mode({"train.on_nonfinite=stop"});
  try {
    run("stopped", set);
    FAIL() << "it goes on";
  } catch (const DivergedError& e) {
    EXPECT_EQ(e.code(), "E0834");
  }
  const json last = metrics("stopped").back();
  EXPECT_EQ(last["skipped"], true);
  const TrainResult rest = run("stopped", in_mode(), true);
  EXPECT_EQ(rest.steps, 24 - last["step"].get<std::int64_t>());
  run("plain", in_mode());
  expect_same_state("stopped", "plain", "step-000024");
}

TEST_P(Rollback, AStopLeavesTheRunningStatisticsOfBeforeTheStep) {
  use_batch_norm();
  const auto set = in_mode({"train.on_nonfinite=stop", "data.shape=[1, 4, 4]"});
  EXPECT_EQ(code_of([&] { run("stopped", set); }), "E0834");
  const std::int64_t stopped = metrics("stopped").back()["step"];
  CheckpointFolder folder(folder_ / "stopped" / "checkpoints");
  const auto newest = folder.newest_healthy();
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->meta.step, stopped);
  EXPECT_EQ(run("stopped", set, true).steps, 24 - stopped);
}

// Batch norm of features whose squares fp32 does not hold: their variance is infinite, and what it
// divides is 0, so that loss and gradients show nothing.
TEST_P(Rollback, ItSeesRunningStatisticsThatAStepRuins) {
  use_batch_norm("1e25");
  const std::vector<std::string> wide = {"data.shape=[1, 4, 4]", "precision=O0"};
  const auto with = [&](const char* rule) {
    std::vector<std::string> set = in_mode(wide);
    set.push_back(std::string("train.on_nonfinite=") + rule);
    return set;
  };
  EXPECT_EQ(code_of([&] { run("skipping", with("skip")); }), "E0822");
  for (const json& line : metrics("skipping")) {
    if (!line.contains("loss")) continue;
    EXPECT_FALSE(line["loss"].is_null());
    EXPECT_NE(line.value("skipped", false), true);
  }
  const TrainResult back = run("back", with("rollback"));
  EXPECT_EQ(back.last_step, 24);
  ASSERT_FALSE(back.rollbacks.empty());
  EXPECT_NE(back.rollbacks[0].reason.find("running statistics"), std::string::npos)
      << back.rollbacks[0].reason;
  EXPECT_EQ(code_of([&] { run("stopped", with("stop")); }), "E0834");
  EXPECT_EQ(metrics("stopped").back()["step"], back.rollbacks[0].from);
}

// A run that keeps one checkpoint has another to go back to, and what lies before the place that it
// went back to stays until it is past its trouble.
TEST_P(Rollback, RetentionLeavesPlacesToGoBackTo) {
  const auto set = in_mode({"train.on_nonfinite=rollback", "train.keep_checkpoints=1"});
  const auto all = in_mode({"train.on_nonfinite=rollback"});
  const TrainResult few = run("few", set), many = run("many", all);
  ASSERT_FALSE(many.rollbacks.empty());
  EXPECT_EQ(few.rollbacks, many.rollbacks);
  expect_same_run("few", "many");
  // All examples are bad from some step on: the third return in a row goes to the one before.
  write_table("1e6", 8);
  try {
    run("hopeless", in_mode({"train.on_nonfinite=rollback", "train.keep_checkpoints=1",
                             "train.checkpoint_every=1", "train.rollbacks=4"}));
    FAIL() << "it ends";
  } catch (const DivergedError& e) {
    EXPECT_EQ(e.code(), "E0835");
  }
  CheckpointFolder folder(folder_ / "hopeless" / "checkpoints");
  EXPECT_TRUE(folder.newest_healthy());
}

// A listener that acts when a step's numbers are there, and before the run judges them.
struct AtStep : Listener {
  AtStep(std::int64_t at, std::function<void()> does) : step(at), act(std::move(does)) {}
  void step_done(const StepDone& e, Control&) override {
    if (e.step == step) std::exchange(act, [] {})();
  }
  std::int64_t step;
  std::function<void()> act;
};

// Which checkpoints are healthy, and where a run goes back to, does not depend on how it saves.
TEST_P(Rollback, GoesTheSameWayWaitingForItsCheckpointsOrNot) {
  const auto run_in_both = [&](const std::string& name, std::vector<std::string> set) {
    const std::string end = code_of([&] { run(name + "-beside", in_mode(set)); });
    set.push_back("train.checkpoint_copy=false");
    EXPECT_EQ(code_of([&] { run(name + "-waiting", in_mode(set)); }), end);
    expect_same_run(name + "-beside", name + "-waiting");
    for (int step = 4; step <= 24; step += 4) {
      const std::string at = fmt::format("step-{:06}", step);
      expect_same_state(name + "-beside", name + "-waiting", at);
      EXPECT_EQ(read_manifest(checkpoint(name + "-beside", at)).meta.problem,
                read_manifest(checkpoint(name + "-waiting", at)).meta.problem);
    }
  };
  run_in_both("back", {"train.on_nonfinite=rollback"});
  use_batch_norm();
  run_in_both("ruined", {"data.shape=[1, 4, 4]"});
  EXPECT_FALSE(read_manifest(checkpoint("ruined-beside", "step-000024")).meta.healthy());
}

TEST_P(Rollback, ACheckpointThatWasDamagedMeanwhileIsPassedOver) {
  const auto set = in_mode({"train.on_nonfinite=rollback", "train.checkpoint_copy=false"});
  const TrainResult straight = run("straight", set);
  const auto later =
      std::ranges::find_if(straight.rollbacks, [](const aloft::Rollback& r) { return r.to >= 4; });
  ASSERT_NE(later, straight.rollbacks.end());
  aloft::TrainOptions options;
  options.out = folder_ / "damaged";
  options.quiet = true;
  const std::string name =
      "step-0000" + std::string(later->to < 10 ? "0" : "") + std::to_string(later->to);
  bool is_damaged = false;
  AtStep damages(later->from, [&] {
    const Path file = checkpoint("damaged", name) / "state.safetensors";
    std::string text = read_file(file, 1 << 20);
    text[text.size() / 2] ^= 1;
    folder_.put(file, text);
    is_damaged = true;
  });
  options.listeners = {&damages};
  const TrainResult result = run_training(recipe(set), options);
  ASSERT_TRUE(is_damaged);
  EXPECT_EQ(result.last_step, 24);
  const auto at = static_cast<std::size_t>(later - straight.rollbacks.begin());
  ASSERT_GT(result.rollbacks.size(), at);
  EXPECT_EQ(result.rollbacks[at].from, later->from);
  EXPECT_EQ(result.rollbacks[at].to, later->to - 4);
}

// Texts of a course that was left are gone when the run is told to have gone back.
TEST_F(SmallRun, SamplesOfALeftCourseAreGone) {
  struct Looks : Listener {
    explicit Looks(Path samples) : folder(std::move(samples)) {}
    void step_settled(const StepSettled& e, Control&) override { newest = e.step; }
    void rolled_back(const RolledBack& e) override {
      if (newest > e.step) ++returns;
      expect_none_behind(e.step);
    }
    void step_begun(const StepBegun& e) override { expect_none_behind(e.step - 1); }
    void expect_none_behind(std::int64_t step) const {
      for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string stem = entry.path().stem().string();
        EXPECT_LE(step_in_name(stem).value_or(0), step) << stem;
      }
    }
    Path folder;
    std::int64_t newest = 0;
    int returns = 0;
  } looks(folder_ / "run" / "samples");
  aloft::TrainOptions options;
  options.out = folder_ / "run";
  options.quiet = true;
  options.listeners = {&looks};
  std::vector<std::string> set = {
      "train.on_spike=rollback", "train.spike_window=3", "train.spike_factor=1.04",
      "train.rollbacks=30",      "train.sample_every=1", "train.sample_tokens=2",
      "train.steps=24",          "optimizer.lr=2e-2",    "precision=O0"};
  run_training(recipe(set), options);
  EXPECT_GT(looks.returns, 0);
  // Where a kill came before they were removed, going on removes them.
  folder_.put(folder_ / "run" / "samples" / "step-000025.txt", "of another course");
  std::ranges::replace(set, std::string("train.steps=24"), std::string("train.steps=26"));
  options.resume = true;
  run_training(recipe(set), options);
}

// As they are handed out: of a table that is divided, and of tokens, in either order.
TEST(PlacesOfAStep, AreThoseOfItsBatches) {
  const TemporaryFolder folder;
  std::string table, tokens;
  for (int i = 0; i < 30; ++i) table += std::to_string(i) + ",0.5," + std::to_string(i % 3) + "\n";
  for (int i = 0; i < 1000; ++i)
    for (const int byte : {i & 255, i >> 8}) tokens += static_cast<char>(byte);
  folder.put(folder / "a.csv", table);
  folder.put(folder / "t.bin", tokens);
  const auto expect_places = [&](std::vector<aloft::Override> set, const std::string& before,
                                 const std::string& behind) {
    set.push_back({"train.batch", "3"});
    set.push_back({"train.accumulate", "2"});
    const aloft::Recipe recipe = aloft::parse_recipe("", "r.toml", set);
    const auto data = aloft::source_of(recipe).open(recipe, true);
    const auto examples = data->training(recipe, 0);
    for (int step = 0; step < 12; ++step) {
      std::string places;
      for (int micro = 0; micro < 2; ++micro) {
        const aloft::ExampleBatch& batch = *examples->next();
        const std::size_t width = batch.columns[0].size() / 3;
        for (std::size_t row = 0; row < 3; ++row) {  // each begins with its own number
          float value = 0;
          std::int32_t id = 0;
          std::memcpy(&value, batch.columns[0].data() + row * width, sizeof(value));
          std::memcpy(&id, batch.columns[0].data() + row * width, sizeof(id));
          places += (places.empty() ? "" : ", ") +
                    std::to_string(before == "examples " ? static_cast<std::int32_t>(value) : id);
        }
      }
      EXPECT_EQ(data->places_of_step(recipe, examples->position()), before + places + behind);
    }
  };
  expect_places({{"model.family", "mlp"},
                 {"data.csv", (folder / "a.csv").string()},
                 {"data.validation", "0.3"}},
                "examples ", " of a.csv, counted from 0");
  for (const char* sampling : {"windows", "random"})
    expect_places({{"data.train_tokens", (folder / "t.bin").string()},
                   {"data.sampling", sampling},
                   {"model.context", "16"}},
                  "windows of 16 tokens from training tokens ", " on, counted from 0");
}
INSTANTIATE_TEST_SUITE_P(Modes, Rollback, testing::Values("graph", "eager"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace aloft::e2e
