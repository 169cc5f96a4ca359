// Going on with a run: from its end, from a crash, from a damaged checkpoint, after Ctrl-C, in
// either mode and on any number of threads the same bits as the run that was never interrupted.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "checkpoint/checkpoint.h"
#include "e2e/small_run.h"
#include "frontend/eager.h"
#include "start_program.h"
#include "train/session.h"

namespace aloft::e2e {
namespace {

namespace fs = std::filesystem;

class Resume : public SmallRun, public testing::WithParamInterface<const char*> {
 protected:
  std::vector<std::string> in_mode(std::vector<std::string> set = {}) const {
    set.push_back(std::string("train.mode=") + GetParam());
    return set;
  }
  // A copy of run "straight" as a crash after `step` steps and before the next checkpoint would
  // have left it: its metrics run on, up to a line that was cut short.
  void crash(const std::string& out, int newest) const {
    fs::copy(folder_ / "straight", folder_ / out, fs::copy_options::recursive);
    for (int step : {4, 8, 12})
      if (step > newest) fs::remove_all(checkpoint(out, name(step)));
    std::ofstream(folder_ / out / "metrics.jsonl", std::ios::app) << "{\"step\": 13, \"lo";
    if (newest > 0) return;  // else the record must not say that there was a checkpoint
    auto record = nlohmann::json::parse(read_file(folder_ / out / "run.json", 1 << 20));
    record.erase("result");
    record.update({{"saved", nullptr}, {"finished", false}});
    folder_.put(folder_ / out / "run.json", record.dump());
  }
  static std::string name(int step) {
    const std::string digits = std::to_string(step);
    return "step-" + std::string(6 - digits.size(), '0') + digits;
  }
  void flip_byte(const Path& file, std::size_t at) const {
    std::string content = read_file(file, 1 << 26);
    ASSERT_LT(at, content.size());
    content[at] = static_cast<char>(content[at] ^ 0x10);
    folder_.put(file, content);
  }
};

TEST_P(Resume, AfterACrashItEqualsTheRunWithoutOne) {
  const TrainResult straight = run("straight", in_mode());
  EXPECT_EQ(straight.steps, 12);
  for (int newest : {4, 8, 0}) {  // 0: it crashed before its first checkpoint
    const std::string out = "crashed" + std::to_string(newest);
    crash(out, newest);
    const TrainResult resumed = run(out, in_mode(), true);
    EXPECT_EQ(resumed.steps, 12 - newest);
    EXPECT_EQ(resumed.val_loss, straight.val_loss);
    expect_same_state("straight", out);
    EXPECT_EQ(metrics(out), metrics("straight")) << newest;
  }
}

// The end of a shorter run may be a turn of the longer one, which a plateau hears of, and may be
// none, which takes no patience.
TEST_P(Resume, LengthenedItEqualsTheWhole) {
  const auto set = in_mode({"schedule.kind=plateau", "schedule.patience=0", "schedule.gamma=0.5",
                            "schedule.threshold=0.5", "train.eval_every=2", "train.patience=5"});
  run("whole", set);
  for (const char* at : {"4", "5", "6"}) {
    auto first = set;
    first.push_back(std::string("train.steps=") + at);
    const std::string out = std::string("cut") + at;
    run(out, first);
    const TrainResult went_on = run(out, set, true);
    EXPECT_EQ(went_on.last_step, 12) << at;
    expect_same_state("whole", out);
  }
}

TEST_P(Resume, HalfAndHalfEqualsTheWhole) {
  // The schedule must not depend on where the run was to end.
  const auto set = in_mode({"schedule.kind=constant"});
  run("whole", set);
  auto half = set;
  half.push_back("train.steps=6");
  run("halves", half);
  run("halves", set, true);
  expect_same_state("whole", "halves");
  auto lines = metrics("halves");
  // The first half ended, and so it was evaluated.
  std::erase_if(lines, [](const auto& l) { return l.contains("val_loss") && l["step"] == 6; });
  EXPECT_EQ(lines, metrics("whole"));
}

TEST_P(Resume, GroupsGoOnWithTheirRates) {
  const auto groups = R"(optimizer.groups=[{parameters=["h.*"], lr=1e-4, weight_decay=0.3}])";
  run("straight", in_mode({groups}));
  crash("crashed", 8);
  EXPECT_EQ(run("crashed", in_mode({groups}), true).steps, 4);
  expect_same_state("straight", "crashed");
  EXPECT_EQ(metrics("crashed"), metrics("straight"));
  run("plain", in_mode());
  EXPECT_NE(bytes("plain", name(12), "model.safetensors"),
            bytes("straight", name(12), "model.safetensors"));
}

TEST_P(Resume, AFlippedByteMakesItPassTheCheckpointOver) {
  run("straight", in_mode());
  const std::pair<const char*, std::size_t> places[] = {{"model.safetensors", 4},
                                                        {"model.safetensors", 9000},
                                                        {"state.safetensors", 20000},
                                                        {"manifest.json", 12}};
  for (const auto& [file, at] : places) {
    const std::string out = std::string("flipped-") + file + std::to_string(at);
    crash(out, 8);
    flip_byte(checkpoint(out, name(8)) / file, at);
    const TrainResult resumed = run(out, in_mode(), true);
    EXPECT_EQ(resumed.steps, 8) << out;  // from step 4
    expect_same_state("straight", out);
    EXPECT_EQ(metrics(out), metrics("straight")) << out;
  }
}

TEST_P(Resume, WithoutACheckpointItStartsAnew) {
  run("straight", in_mode());
  const TrainResult fresh = run("fresh", in_mode(), true);
  EXPECT_EQ(fresh.steps, 12);
  expect_same_state("straight", "fresh");
  EXPECT_EQ(metrics("fresh"), metrics("straight"));
}

TEST_P(Resume, ARunThatEndedIsLeftAsItIs) {
  const TrainResult straight = run("straight", in_mode());
  fs::copy(folder_ / "straight", folder_ / "again", fs::copy_options::recursive);
  const TrainResult again = run("again", in_mode(), true);
  EXPECT_EQ(again.steps, 0);
  EXPECT_EQ(again.val_loss, straight.val_loss);
  expect_same_state("straight", "again");
  EXPECT_EQ(metrics("again"), metrics("straight"));
}

TEST_P(Resume, WhatAnUnfinishedSaveLeftBehindIsIgnoredAndRemoved) {
  run("straight", in_mode());
  crash("partial", 8);
  const Path left = checkpoint("partial", ".step-000012.partial");
  fs::create_directories(left);
  folder_.put(left / "model.safetensors", "half of it");
  EXPECT_EQ(run("partial", in_mode(), true).steps, 4);
  EXPECT_FALSE(fs::exists(left));
  expect_same_state("straight", "partial");
}

TEST_P(Resume, ASecondRunInTheSameFolderIsRefused) {
  run("straight", in_mode());
  EXPECT_THROW(run("straight", in_mode()), UserError);
  const auto other = in_mode({"model.dim=16"});
  EXPECT_THROW(run("straight", other, true), Error);  // and not half of the old values loaded
}

TEST_P(Resume, ThreadsDoNotChangeABit) {
  run("straight", in_mode());
  for (const char* threads : {"1", "4"}) {
    const std::string out = std::string("threads") + threads;
    run(out, in_mode({std::string("train.threads=") + threads}));
    expect_same_state("straight", out);
    EXPECT_EQ(metrics(out), metrics("straight")) << threads;
  }
}

// The run that is made anew from step 5 draws step 6 at the very random state at which the run
// before it in this process drew last.
TEST_P(Resume, AfterAnotherRunInTheProcessItDrawsWhatAFreshProcessDraws) {
  const auto set = in_mode({"train.steps=6", "train.checkpoint_every=5", "model.dropout=0.5"});
  run("straight", set);
  for (const char* out : {"here", "elsewhere"}) {
    fs::copy(folder_ / "straight", folder_ / out, fs::copy_options::recursive);
    fs::remove_all(checkpoint(out, name(6)));
  }
  EXPECT_EQ(run("here", set, true).steps, 1);
  std::vector<std::string> words = {
      ALOFT_PROGRAM, "train",  folder_ / "small.toml", "--out", folder_ / "elsewhere",
      "--resume",    "--quiet"};
  for (const std::string& s : set) words.insert(words.end(), {"--set", s});
  int status = 0;
  ASSERT_GT(waitpid(start_program(words), &status, 0), 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  for (const char* out : {"here", "elsewhere"}) {
    expect_same_state("straight", out, name(6));
    EXPECT_EQ(metrics(out), metrics("straight")) << out;
  }
}

// A checkpoint brings its random state along, seeded or not: behind it the same numbers come.
TEST_F(SmallRun, ALoadedCheckpointBeginsTheDrawsAnew) {
  const Recipe recipe = this->recipe({"model.dropout=0.5"});
  Session session = open_session(recipe, {{"vocab", std::int64_t{17}}}, {});
  make_values(session);
  const nlohmann::json config = {{"kind", "small"}};
  CheckpointMeta meta;
  meta.policy = session.model().policy().str();
  meta.model = config;
  const Path saved = folder_ / "saved";
  fs::create_directories(saved);
  write_checkpoint(saved, meta, session.model(), {*session.optimizer});
  const Tensor tokens = from_ints(std::vector<std::int32_t>(16, 3), {1, 16});
  const auto logits = [&] { return (*session.task->writer())(tokens).to_floats(); };
  const std::vector<float> first = logits(), second = logits();
  EXPECT_NE(first, second);  // other numbers a call
  load_checkpoint(saved, config, session.model(), {*session.optimizer});
  EXPECT_EQ(logits(), first);
  EXPECT_EQ(logits(), second);
}

// Runs the program and interrupts it once it has saved a checkpoint; its exit code.
int interrupted(const std::vector<std::string>& words, const fs::path& checkpoint) {
  const pid_t child = start_program(words);
  int status = 0;
  pid_t ended = 0;
  while (!fs::exists(checkpoint) && (ended = waitpid(child, &status, WNOHANG)) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (ended == 0) {
    kill(child, SIGINT);
    ended = waitpid(child, &status, 0);
  }
  return ended == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_P(Resume, CtrlCFinishesTheStepSavesAndExitsWith130) {
  const auto set =
      in_mode({"train.steps=300", "train.checkpoint_every=10", "train.keep_checkpoints=2"});
  const std::string recipe = folder_ / "small.toml", out = folder_ / "stopped";
  std::vector<std::string> words = {ALOFT_PROGRAM, "train", recipe, "--out", out, "--quiet"};
  for (const std::string& s : set) words.insert(words.end(), {"--set", s});
  int code = interrupted(words, checkpoint("stopped", name(10)));
  // On a busy machine the run may end before anybody interrupts it.
  for (int again = 0; code == 0 && again < 5; ++again) {
    fs::remove_all(out);
    code = interrupted(words, checkpoint("stopped", name(10)));
  }
  ASSERT_EQ(code, 130);

  const std::size_t done = metrics("stopped").size();
  const TrainResult resumed = run("stopped", set, true);
  EXPECT_GT(done, 0u);
  EXPECT_LE(resumed.steps, 290);
  EXPECT_GT(resumed.steps, 0);
  run("straight", set);
  expect_same_state("straight", "stopped", name(300));
  EXPECT_EQ(metrics("stopped"), metrics("straight"));
}

INSTANTIATE_TEST_SUITE_P(Modes, Resume, testing::Values("graph", "eager"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace aloft::e2e
