// Runs that look for the op in which a step stops to be finite: overflow.json of compiled and eager
// steps, of micro-batches, of runs that are stopped, go on and go back.
#include "observe/probe/overflow.h"

#include <sys/stat.h>

#include <cmath>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "e2e/small_run.h"
#include "e2e/table_run.h"
#include "run/listener.h"
#include "train/overflow_changes.h"

namespace aloft::e2e {
namespace {

using Json = nlohmann::ordered_json;

class OverflowRecord : public SmallRun {
 protected:
  void SetUp() override {
    SmallRun::SetUp();
    folder_.put(folder_ / "small.toml",
                std::string(kTableRecipe) + "[probe]\ntask = \"overflow\"\n");
    write_table("1e6");
  }
  // 96 examples, 24 steps of an epoch; a few have a feature that fp16 does not hold.
  void write_table(const std::string& odd) const {
    folder_.put(folder_ / "table.csv", table_with(odd, 13));
  }
  // A run that may end with a loss that is not finite.
  void look(const std::string& out, const std::vector<std::string>& set = {}, bool resume = false,
            Listener* guest = nullptr) const {
    aloft::TrainOptions options;
    options.out = folder_ / out;
    options.resume = resume;
    options.quiet = true;
    if (guest) options.listeners = {guest};
    try {
      run_training(recipe(set), options);
    } catch (const DivergedError&) {
    }
  }
  Path file(const std::string& out) const { return folder_ / out / "probe" / "overflow.json"; }
  Json record(const std::string& out) const { return Json::parse(read_file(file(out), 1 << 26)); }
  // Steps of metrics.jsonl, from 0 on, whose loss is not finite.
  std::vector<std::int64_t> steps_without_loss(const std::string& out) const {
    std::vector<std::int64_t> steps;
    for (const nlohmann::json& line : metrics(out))
      if (line.contains("loss") && !line["loss"].is_number())
        steps.push_back(line["step"].get<std::int64_t>() - 1);
    return steps;
  }
  static std::vector<std::int64_t> steps_of(const Json& found) {
    std::vector<std::int64_t> steps;
    for (const Json& entry : found) steps.push_back(entry.at("step"));
    return steps;
  }
};

TEST_F(OverflowRecord, OfEagerStepsIsThatOfCompiledOnes) {
  look("graph");
  look("eager", {"train.mode=eager"});
  Json graph = record("graph")["found"], eager = record("eager")["found"];
  EXPECT_EQ(steps_of(graph), steps_without_loss("graph"));
  ASSERT_GE(graph.size(), 4U);
  ASSERT_EQ(eager.size(), graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    EXPECT_EQ(graph[i]["first"]["op"], "cast");
    EXPECT_EQ(eager[i]["first"]["call"], "0/cast#0");
    EXPECT_TRUE(eager[i]["first"]["operands_are_finite"]);
    for (const char* key : {"instruction", "call"}) {
      graph[i]["first"].erase(key);
      eager[i]["first"].erase(key);
    }
    for (Json* one : {&graph[i], &eager[i]})  // an eager call's inputs have no names
      (*one)["first"]["operands"][0].erase("name");
    EXPECT_EQ(eager[i], graph[i]);
  }
}

// Where an update is too long, and where what it made is too large in the step behind it.
TEST_F(OverflowRecord, OfEagerUpdatesNamesWhatTheyTook) {
  write_table("0.5");
  for (const std::string mode : {"graph", "eager"}) {
    const std::vector<std::string> set = {"train.mode=" + mode, "optimizer.kind=sgd",
                                          "optimizer.lr=1000000", "optimizer.clip_norm=0",
                                          "train.steps=3"};
    look(mode, set);
  }
  Json graph = record("graph")["found"], eager = record("eager")["found"];
  ASSERT_FALSE(graph.empty());
  ASSERT_EQ(steps_of(eager), steps_of(graph));
  for (std::size_t i = 0; i < graph.size(); ++i)
    for (const char* key : {"op", "phase", "module", "name", "operands_are_finite"})
      EXPECT_EQ(eager[i]["first"][key], graph[i]["first"][key]) << i << " " << key;
}

// What an earlier micro-batch left is looked at in the sums of gradients.
TEST_F(OverflowRecord, OfMicroBatchesSaysWhichComesOfEarlierOnes) {
  for (const std::string mode : {"graph", "eager"}) {
    look(mode, {"train.mode=" + mode, "train.batch=2", "train.accumulate=2"});
    int of_earlier = 0, of_last = 0;
    const Json found = record(mode)["found"];
    for (const Json& entry : found) {
      const Json& first = entry.at("first");
      const bool is_earlier = first.contains("earlier_micro_batches");
      const std::string name = first.at("name"), text = probe::overflow_text(first);
      EXPECT_EQ(is_earlier, name.starts_with("variable:accumulated.")) << first;
      EXPECT_EQ(first.at("operands_are_finite"), !is_earlier) << first;
      EXPECT_EQ(is_earlier, !first.contains("op")) << first;
      EXPECT_EQ(is_earlier,
                text.find("comes from the step's earlier micro-batches") != std::string::npos)
          << text;
      ++(is_earlier ? of_earlier : of_last);
    }
    EXPECT_GT(of_earlier, 0) << mode;
    EXPECT_GT(of_last, 0) << mode;
  }
}

// All operands of all ops of the step, made once more, say where it began: which micro-batch too.
TEST_F(OverflowRecord, MadeOnceMoreHasTheOpOfAnEarlierMicroBatch) {
  for (const std::string mode : {"graph", "eager"}) {
    look(mode, {"train.mode=" + mode, "train.batch=2", "train.accumulate=2"});
    int of_earlier = 0;
    const Json found = record(mode)["found"];
    for (const Json& entry : found) {
      const Json added = overflow_changes(folder_ / mode, entry);
      const bool is_earlier = entry["first"].contains("earlier_micro_batches");
      ASSERT_EQ(added.contains("origin"), is_earlier) << added;
      EXPECT_EQ(added["first"]["operands_are_finite"], !is_earlier);
      EXPECT_FALSE(added["values"].is_null());
      if (!is_earlier) continue;
      ++of_earlier;
      EXPECT_EQ(added["origin"]["op"], "cast");
      EXPECT_EQ(added["origin"]["micro_batch"], 0);
      EXPECT_NE(overflow_changes_text(added).find("micro-batch 0"), std::string::npos);
    }
    EXPECT_GT(of_earlier, 0) << mode;
  }
}

// Looks at the file behind each step.
struct Watch : Listener {
  explicit Watch(Path path) : file(std::move(path)) {}
  void step_done(const StepDone& e, Control&) override {
    lost += !std::isfinite(e.loss);
    const Json now = Json::parse(read_file(file, 1 << 26));
    EXPECT_EQ(now["found"].size(), static_cast<std::size_t>(lost)) << e.step;
    struct stat info = {};
    EXPECT_EQ(stat(file.c_str(), &info), 0);
    written += info.st_ino != inode;  // a file that is written takes the place of the one before
    inode = info.st_ino;
  }
  Path file;
  ino_t inode = 0;
  int written = 0, lost = 0;
};

TEST_F(OverflowRecord, HasEachStepAtOnceAndIsNotWrittenForNothing) {
  for (const std::string mode : {"graph", "eager"}) {
    Watch watch(file(mode));
    const double begin = monotonic_seconds();
    look(mode, {"train.mode=" + mode}, false, &watch);
    EXPECT_GE(watch.lost, 4);
    EXPECT_LE(watch.written, watch.lost + 2 + (monotonic_seconds() - begin)) << mode;
    EXPECT_EQ(record(mode)["steps"], 24);
  }
}

TEST_F(OverflowRecord, OfARunThatGoesOnKeepsWhatWasFound) {
  look("whole");
  look("parts", {"train.steps=12"});
  const std::size_t before = record("parts")["found"].size();
  EXPECT_GT(before, 0U);
  look("parts", {}, true);
  EXPECT_GT(record("parts")["found"].size(), before);
  EXPECT_EQ(record("parts"), record("whole"));
}

// Copies a run as it stands when a checkpoint is whole: as SIGKILL would leave it then.
struct KilledAt : Listener {
  KilledAt(std::int64_t at, Path run, Path copy)
      : step(at), from(std::move(run)), to(std::move(copy)) {}
  void checkpoint_saved(const CheckpointSaved& e) override {
    if (e.step == step) std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
  }
  std::int64_t step;
  Path from, to;
};

TEST_F(OverflowRecord, OfARunThatWasKilledHasCountedAllSteps) {
  write_table("0.5");  // nothing is found, for which the file would be written
  for (const std::string mode : {"graph", "eager"}) {
    const std::vector<std::string> set = {"train.mode=" + mode, "train.checkpoint_every=10"};
    KilledAt killed(10, folder_ / mode, folder_ / (mode + "-killed"));
    look(mode, set, false, &killed);
    EXPECT_EQ(record(mode + "-killed")["steps"], 10) << mode;
    look(mode + "-killed", set, true);
    EXPECT_EQ(record(mode + "-killed"), record(mode)) << mode;
  }
}

TEST_F(OverflowRecord, SaysWhichStepsTheRunWentBackBehind) {
  look("back", {"train.on_nonfinite=rollback"});
  const Json found = record("back")["found"];
  EXPECT_TRUE(steps_without_loss("back").empty());
  ASSERT_GE(found.size(), 2U);
  for (const Json& entry : found) EXPECT_EQ(entry.value("undone", false), true) << entry;
}

}  // namespace
}  // namespace aloft::e2e
