// What a run tells its listeners: which events in which order, what they carry, what a listener may
// ask for, and what becomes of a run whose listener fails.
#include <csignal>
#include <stdexcept>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "e2e/small_run.h"
#include "run/listener.h"

namespace aloft::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Writes down every event, in a line.
class Witness : public Listener {
 public:
  void run_begun(const RunBegun& e, Control&) override {
    begun = e.step;
    begun_best = e.best;
    add("run begun", e.step);
  }
  void step_begun(const StepBegun& e) override { add("step begun", e.step); }
  void step_done(const StepDone& e, Control&) override {
    add("step done", e.step);
    steps.push_back(e);
  }
  void step_skipped(const StepSkipped& e, Control&) override {
    add("skipped", e.step);
    skips.push_back(e);
  }
  void epoch_done(const EpochDone& e, Control&) override {
    add("epoch " + std::to_string(e.epoch), e.step);
  }
  void evaluation_begun(const EvaluationBegun& e) override { add("evaluation begun", e.step); }
  void evaluation_done(const EvaluationDone& e, Control&) override {
    add("evaluation done", e.step);
    evaluations.push_back(e);
  }
  void checkpoint_begun(const CheckpointBegun& e) override { add("checkpoint begun", e.step); }
  void checkpoint_saved(const CheckpointSaved& e) override {
    add("checkpoint saved", e.step);
    is_whole = is_whole && path_exists(e.path / "manifest.json");
  }
  void step_settled(const StepSettled& e, Control&) override {
    add(e.is_resumed ? "settled again" : e.is_last ? "settled, the last" : "settled", e.step);
  }
  void steps_over(const StepsOver& e) override {
    add("steps over", e.step);
    if (e.error) said.push_back("by " + e.error->code());
    if (*e.signal) said.push_back(std::string("by ") + e.signal);
    if (e.stop) said.push_back("by " + e.stop->reason);
  }
  void diverged(const Diverged& e) override {
    add("diverged", e.step);
    kept = e.kept;
  }
  void run_closing(const RunClosing& e) override { add("closing", e.step); }
  void run_ended(const RunEnded& e) override {
    add(e.error ? "ended by " + e.error->code() : "ended", e.result.last_step);
    record = json::parse(read_file(e.folder / "run.json", 1 << 26));
  }

  std::vector<std::string> said;
  std::vector<StepDone> steps;
  std::vector<StepSkipped> skips;
  std::vector<EvaluationDone> evaluations;
  std::int64_t begun = -1;
  std::optional<BestValidation> begun_best;
  bool is_whole = true;
  std::string kept = "?";
  json record;  // run.json at the run's end

 private:
  void add(const std::string& what, std::int64_t step) {
    said.push_back(what + " " + std::to_string(step));
  }
};

// Does something in a step.
class InStep : public Listener {
 public:
  InStep(std::int64_t step, std::function<void(Control&)> act)
      : step_(step), act_(std::move(act)) {}
  void step_done(const StepDone& e, Control& run) override {
    if (e.step == step_) act_(run);
    heard_behind_ = heard_behind_ || e.step > step_;
  }
  void step_settled(const StepSettled& e, Control&) override { settled_ = e.step; }
  void checkpoint_begun(const CheckpointBegun& e) override { saved_ = e.step; }
  void run_ended(const RunEnded& e) override { error_ = e.error ? e.error->code() : "none"; }

  bool heard_behind_ = false;
  std::int64_t settled_ = 0, saved_ = 0;
  std::string error_;

 private:
  std::int64_t step_;
  std::function<void(Control&)> act_;
};

class Listeners : public SmallRun {
 protected:
  TrainResult watched(const std::string& out, const std::vector<Listener*>& listeners,
                      const std::vector<std::string>& set = {}, bool resume = false) const {
    aloft::TrainOptions options;
    options.out = folder_ / out;
    options.resume = resume;
    options.quiet = true;
    options.listeners = listeners;
    return run_training(recipe(set), options);
  }
  json record(const std::string& out) const {
    return json::parse(read_file(folder_ / out / "run.json", 1 << 26));
  }
  // What a run of kSmallRecipe tells, by its lines in metrics.jsonl.
  std::vector<std::string> expected(const std::string& out, std::int64_t steps,
                                    std::int64_t eval_every, std::int64_t save_every,
                                    std::int64_t epoch_at) const {
    std::vector<std::string> all;
    const auto add = [&](const char* what, std::int64_t step) {
      all.push_back(what + (" " + std::to_string(step)));
    };
    const auto pair = [&](const char* begun, const char* done, std::int64_t step) {
      add(begun, step);
      add(done, step);
    };
    add("run begun", 0);
    for (const json& line : metrics(out)) {
      if (!line.contains("loss")) continue;
      const std::int64_t step = line["step"];
      pair("step begun", "step done", step);
      if (line["skipped"]) add("skipped", step);
      if (step == epoch_at) add("epoch 1", step);
      const bool is_last = step == steps;
      if (!is_last && step % eval_every == 0) pair("evaluation begun", "evaluation done", step);
      if (!is_last && step % save_every == 0) pair("checkpoint begun", "checkpoint saved", step);
      add(is_last ? "settled, the last" : "settled", step);
    }
    add("steps over", steps);
    pair("evaluation begun", "evaluation done", steps);
    pair("checkpoint begun", "checkpoint saved", steps);
    pair("closing", "ended", steps);
    return all;
  }
};

// A scale at its ceiling overflows at first; the text is so short that it is read more than once.
TEST_F(Listeners, EveryEventComesInItsPlaceAndSaysWhatTheRecordSays) {
  folder_.put(folder_ / "text.txt", small_text().substr(0, 600));
  for (const char* mode : {"graph", "eager"}) {
    const std::string out = std::string("all") + mode;
    Witness witness;
    std::vector<std::string> set = {R"(precision.loss_scale={kind = "dynamic", init = 1048576})",
                                    std::string("train.mode=") + mode,
                                    "train.checkpoint_copy=false"};
    const TrainResult result = watched(out, {&witness}, set);
    ASSERT_GT(result.skipped, 1);
    // 540 characters make 33 windows of 16; a step takes four of them.
    EXPECT_EQ(witness.said, expected(out, 12, 5, 4, 9));
    EXPECT_EQ(static_cast<std::int64_t>(witness.skips.size()), result.skipped);
    EXPECT_EQ(witness.skips.back().skips, result.skipped);
    EXPECT_EQ(witness.skips[1].in_a_row,
              witness.skips[1].step - witness.skips[0].step == 1 ? 2 : 1);
    EXPECT_FALSE(witness.skips[0].culprit.empty());
    EXPECT_TRUE(witness.is_whole);
    EXPECT_EQ(witness.record["finished"], true);
    std::size_t step = 0, evaluation = 0;
    for (const json& line : metrics(out))
      if (line.contains("loss")) {
        const StepDone& e = witness.steps.at(step++);
        EXPECT_EQ(line["step"], e.step);
        EXPECT_EQ(line["loss"], e.loss);
        EXPECT_EQ(line["lr"], e.lr);
        EXPECT_EQ(line["loss_scale"], e.loss_scale);
        EXPECT_EQ(line["skipped"], e.skipped);
        EXPECT_EQ(line["tokens"], e.tokens);
        if (e.skipped) {
          EXPECT_EQ(line["culprit"], e.culprit);
        }
      } else {
        const EvaluationDone& e = witness.evaluations.at(evaluation++);
        EXPECT_EQ(line["step"], e.step);
        EXPECT_EQ(line["val_loss"], e.validation.loss);
        EXPECT_EQ(line["val_bits_per_byte"], *e.validation.measure("bits_per_byte"));
        EXPECT_FALSE(e.is_repeated);
        EXPECT_EQ(e.is_best(), e.best->step == e.step);
      }
    EXPECT_EQ(witness.evaluations.size(), 3u);
    EXPECT_EQ(witness.evaluations.back().best, result.best);
  }
}

// Written while training goes on, a checkpoint is told at a boundary behind its own, in order, and
// before the next one begins.
TEST_F(Listeners, ACheckpointIsToldWhenItIsWhole) {
  Witness witness;
  watched("beside", {&witness}, {"train.checkpoint_every=3"});
  std::vector<std::string> saves;
  for (const std::string& line : witness.said)
    if (line.starts_with("checkpoint")) saves.push_back(line);
  EXPECT_EQ(saves, (std::vector<std::string>{"checkpoint begun 3", "checkpoint saved 3",
                                             "checkpoint begun 6", "checkpoint saved 6",
                                             "checkpoint begun 9", "checkpoint saved 9",
                                             "checkpoint begun 12", "checkpoint saved 12"}));
  EXPECT_TRUE(witness.is_whole);
  watched("waiting", {}, {"train.checkpoint_every=3", "train.checkpoint_copy=false"});
  for (const char* step : {"step-000003", "step-000006", "step-000009", "step-000012"}) {
    expect_same_state("beside", "waiting", step);
    const CheckpointMeta one = read_manifest(checkpoint("beside", step)).meta;
    const CheckpointMeta other = read_manifest(checkpoint("waiting", step)).meta;
    EXPECT_EQ(one.problem, other.problem);
    EXPECT_EQ(one.data_position, other.data_position);
    EXPECT_EQ(one.evaluations, other.evaluations);
  }
}

// By the clock too, waiting or not.
TEST_F(Listeners, TheClockSavesToo) {
  for (const char* copy : {"false", "true"}) {
    const std::string out = std::string("clock-") + copy;
    watched(out, {},
            {std::string("train.checkpoint_copy=") + copy, "train.checkpoint_every=0",
             "train.checkpoint_minutes=1e-6"});
    const CheckpointMeta first = read_manifest(checkpoint(out, "step-000001")).meta;
    EXPECT_EQ(first.step, 1);
    EXPECT_TRUE(first.healthy());
    expect_same_state(out, "clock-false");
  }
}

// SIGUSR1 asks for a checkpoint behind the step in hand; the run goes on, waiting or not.
TEST_F(Listeners, ASignalSavesAndTheRunGoesOn) {
  run("plain");
  std::signal(SIGUSR1, SIG_DFL);  // jobs may begin with it ignored
  for (const char* copy : {"false", "true"}) {
    const std::string out = std::string("asked-") + copy;
    InStep asks(6, [](Control&) { std::raise(SIGUSR1); });
    const TrainResult result =
        watched(out, {&asks}, {std::string("train.checkpoint_copy=") + copy});
    EXPECT_EQ(result.exit, ExitCode::Ok);
    EXPECT_EQ(result.last_step, 12);
    EXPECT_EQ(read_manifest(checkpoint(out, "step-000006")).meta.step, 6);
    EXPECT_FALSE(fs::exists(checkpoint(out, "step-000007")));
    EXPECT_EQ(metrics(out), metrics("plain"));
    expect_same_state(out, "plain");
  }
}

TEST_F(Listeners, WhatLooksOnChangesNoBit) {
  const auto without_clock = [&](const std::string& out) {
    json j = record(out);
    for (const char* key : {"run", "started", "compile_s"}) j.erase(key);
    for (const char* key : {"median_step_s", "tokens_per_s", "peak_rss_bytes"})
      j["result"].erase(key);
    return j;
  };
  for (const char* mode : {"graph", "eager"}) {
    const std::string tail = mode, set = "train.mode=" + tail;
    Witness one, two;
    run("plain" + tail, {set});
    watched("watched" + tail, {&one, &two}, {set});
    expect_same_state("plain" + tail, "watched" + tail);
    EXPECT_EQ(metrics("plain" + tail), metrics("watched" + tail));
    EXPECT_EQ(without_clock("plain" + tail), without_clock("watched" + tail));
    EXPECT_EQ(one.said, two.said);
  }
}

TEST_F(Listeners, AStopEndsTheRunAsItsLastStepWouldAndAResumeGoesOn) {
  run("straight");
  Witness witness;
  InStep stops(7, [](Control& run) {
    run.stop("seven is enough");
    run.stop("what comes second does not count");
  });
  const TrainResult stopped =
      watched("stopped", {&stops, &witness}, {"train.checkpoint_copy=false"});
  EXPECT_EQ(stopped.exit, ExitCode::Ok);
  EXPECT_EQ(stopped.last_step, 7);
  EXPECT_TRUE(stopped.val_loss);
  EXPECT_FALSE(stops.heard_behind_);
  EXPECT_EQ(stops.settled_, 7);
  const std::vector<std::string> end = {
      "settled 7",          "steps over 7",      "by seven is enough",
      "evaluation begun 7", "evaluation done 7", "checkpoint begun 7",
      "checkpoint saved 7", "closing 7",         "ended 7"};
  EXPECT_EQ(std::vector(witness.said.end() - 9, witness.said.end()), end);
  const json kept = record("stopped");
  EXPECT_EQ(kept["finished"], true);
  EXPECT_EQ(kept["result"]["stopped_early"], true);
  EXPECT_EQ(kept["result"]["stop_reason"], "seven is enough");
  Witness later;
  EXPECT_EQ(watched("stopped", {&later}, {}, true).last_step, 12);
  EXPECT_EQ(later.begun, 7);
  EXPECT_EQ(later.begun_best, stopped.best);
  EXPECT_EQ(later.said[1], "settled again 7");
  EXPECT_EQ(later.said[2], "step begun 8");
  expect_same_state("straight", "stopped");
  EXPECT_FALSE(record("stopped")["result"].contains("stopped_early"));
}

TEST_F(Listeners, ACheckpointIsSavedWhereOneAsks) {
  InStep saves(6, [](Control& run) { run.save(); });
  watched("saved", {&saves});
  for (const char* step : {"step-000004", "step-000006", "step-000008", "step-000012"})
    EXPECT_TRUE(fs::exists(checkpoint("saved", step))) << step;
  EXPECT_FALSE(fs::exists(checkpoint("saved", "step-000007")));
}

// Rules that a listener keeps over several lives of a run.
struct Enough : Listener {
  std::optional<Stop> over_at(const Standing& at) const override {
    if (at.step < 5) return std::nullopt;
    return Stop{"five is enough", "another rule"};
  }
  void run_begun(const RunBegun& e, Control& run) override {
    if (e.step >= 5) run.stop("five is enough");
  }
  void step_done(const StepDone& e, Control& run) override {
    if (e.step >= 5) run.stop("five is enough");
  }
};

TEST_F(Listeners, ARunThatIsOverByARuleHasNothingToDo) {
  Enough enough;
  Witness witness;
  EXPECT_EQ(watched("over", {&enough}).last_step, 5);
  const std::string before = read_file(folder_ / "over" / "run.json", 1 << 26);
  EXPECT_EQ(watched("over", {&enough, &witness}, {}, true).steps, 0);
  EXPECT_EQ(witness.said, std::vector<std::string>{"ended 5"});
  EXPECT_EQ(read_file(folder_ / "over" / "run.json", 1 << 26), before);
}

TEST_F(Listeners, AStopAtTheStartMakesNoStep) {
  struct AtOnce : Listener {
    void run_begun(const RunBegun&, Control& run) override { run.stop("not today"); }
  } at_once;
  const TrainResult result = watched("none", {&at_once});
  EXPECT_EQ(result.steps, 0);
  EXPECT_TRUE(fs::exists(checkpoint("none", "step-000000")));
  run("straight");
  EXPECT_EQ(run("none", {}, true).last_step, 12);
  expect_same_state("straight", "none");
}

TEST_F(Listeners, ASignalIsToldAndTheRunGoesOn) {
  run("straight");
  Witness witness;
  InStep asks(6, [](Control&) { std::raise(SIGTERM); });
  EXPECT_EQ(watched("interrupted", {&asks, &witness}, {"train.checkpoint_copy=false"}).exit,
            ExitCode::Interrupted);
  EXPECT_EQ(std::vector(witness.said.end() - 6, witness.said.end()),
            (std::vector<std::string>{"steps over 6", "by SIGTERM", "checkpoint begun 6",
                                      "checkpoint saved 6", "closing 6", "ended 6"}));
  EXPECT_EQ(witness.record["finished"], false);
  run("interrupted", {}, true);
  expect_same_state("straight", "interrupted");
  EXPECT_EQ(metrics("straight"), metrics("interrupted"));
}

TEST_F(Listeners, ADivergenceIsToldWithWhatIsKept) {
  Witness witness;
  try {
    watched("diverged", {&witness},
            {"optimizer.lr=1e6", "schedule.kind=constant", "schedule.warmup=0", "train.steps=200",
             "train.eval_every=0", "train.checkpoint_every=0",
             R"(precision.loss_scale={kind = "dynamic", give_up_after = 30})"});
    FAIL() << "it goes on";
  } catch (const DivergedError& e) {
    EXPECT_EQ(e.code(), "E0810");
  }
  EXPECT_EQ(witness.kept, "");
  const std::string step = " " + std::to_string(witness.steps.back().step);
  EXPECT_EQ(std::vector(witness.said.end() - 5, witness.said.end()),
            (std::vector<std::string>{"steps over" + step, "by E0810", "diverged" + step,
                                      "closing" + step, "ended by E0810" + step}));
  EXPECT_EQ(witness.skips.back().in_a_row, 30);
  EXPECT_EQ(witness.record["error"]["code"], "E0810");
}

// All steps are made, and what they have come to is not worth going on from.
TEST_F(Listeners, AnEndThatIsWorthNothingIsTold) {
  Witness witness;
  EXPECT_THROW(watched("worthless", {&witness},
                       {"precision.level=O0", "optimizer.lr=1e4", "schedule.kind=constant",
                        "schedule.warmup=0", "train.eval_every=0", "train.checkpoint_every=0"}),
               DivergedError);
  EXPECT_EQ(std::vector(witness.said.end() - 8, witness.said.end()),
            (std::vector<std::string>{"steps over 12", "evaluation begun 12", "evaluation done 12",
                                      "checkpoint begun 12", "checkpoint saved 12", "diverged 12",
                                      "closing 12", "ended by E0822 12"}));
  EXPECT_EQ(witness.record["error"]["code"], "E0822");
}

// What it has thrown ends the run, what is healthy is saved first, and nothing of it is asked
// again.
TEST_F(Listeners, OneThatThrowsEndsTheRunWithItsError) {
  run("straight");
  const auto expect_saved = [&](const std::string& out, const InStep& fails, const char* code) {
    EXPECT_EQ(record(out)["error"]["code"], code);
    EXPECT_EQ(record(out)["finished"], false);
    EXPECT_EQ(fails.error_, code);
    EXPECT_EQ(fails.saved_, 4) << "one that has failed hears of the checkpoint";
    EXPECT_TRUE(fs::exists(checkpoint(out, "step-000006")));
    EXPECT_EQ(run(out, {}, true).last_step, 12);
    expect_same_state("straight", out);
    EXPECT_EQ(metrics("straight"), metrics(out));
  };
  InStep ours(6, [](Control&) { throw EnvironmentError("E0603", "no room for my file"); });
  EXPECT_THROW(watched("ours", {&ours}), EnvironmentError);
  expect_saved("ours", ours, "E0603");
  InStep theirs(6, [](Control&) { throw std::runtime_error("my own reason"); });
  EXPECT_THROW(watched("theirs", {&theirs}), std::runtime_error);
  EXPECT_NE(record("theirs")["error"]["text"].get<std::string>().find("my own reason"),
            std::string::npos);
  expect_saved("theirs", theirs, "E0828");
  InStep odd(6, [](Control&) { throw 42; });
  EXPECT_THROW(watched("odd", {&odd}), int);
  expect_saved("odd", odd, "E0828");
}

TEST_F(Listeners, NoneIsRefusedBeforeAnythingIsMade) {
  EXPECT_THROW(watched("none", {nullptr}), UserError);
  EXPECT_FALSE(fs::exists(fs::path(checkpoint("none", "x")).parent_path().parent_path()));
}

// Another one that fails while the run is being saved does not keep it from that.
TEST_F(Listeners, ASecondOneThatThrowsCostsNoCheckpoint) {
  struct AtSave : Listener {
    void checkpoint_begun(const CheckpointBegun& e) override {
      if (e.step == 6) throw std::runtime_error("not now");
    }
  } at_save;
  InStep fails(6, [](Control&) { throw std::runtime_error("first"); });
  EXPECT_THROW(watched("twice", {&at_save, &fails}), std::runtime_error);
  EXPECT_TRUE(fs::exists(checkpoint("twice", "step-000006")));
}

TEST_F(Listeners, WhatFailsBehindTheEndUnmakesNothing) {
  struct AtEnd : Listener {
    void run_closing(const RunClosing&) override { throw DataError("E0601", "said alone"); }
    void run_ended(const RunEnded&) override { throw std::runtime_error("thrown at the end"); }
  } at_end;
  Witness witness;
  EXPECT_THROW(watched("end", {&at_end, &witness}), std::runtime_error);
  EXPECT_EQ(witness.said.back(), "ended 12");
  EXPECT_EQ(record("end")["finished"], true);
}

TEST_F(Listeners, OneThatThrowsAtTheStartRefusesTheRun) {
  struct AtStart : Listener {
    void run_begun(const RunBegun&, Control&) override { throw std::runtime_error("no"); }
  } at_start;
  Witness witness;
  EXPECT_THROW(watched("refused", {&at_start, &witness}), std::runtime_error);
  EXPECT_TRUE(witness.said.empty());
  EXPECT_FALSE(fs::exists(folder_ / "refused" / "run.lock"));
  EXPECT_EQ(run("refused", {}, true).last_step, 12);
}

// With a rate that ruins what was learnt, the best comes early.
TEST_F(Listeners, EarlyStoppingGoesByWhatEveryCheckpointKeeps) {
  const std::vector<std::string> set = {
      "optimizer.lr=0.3", "precision.level=O0", "train.steps=40",          "train.eval_every=2",
      "train.patience=3", "train.keep_best=1",  "train.keep_checkpoints=3"};
  Witness straight;
  const TrainResult whole = watched("straight", {&straight}, set);
  ASSERT_LT(whole.last_step, 40);
  ASSERT_GT(whole.last_step, 5);
  EXPECT_EQ(whole.best->evaluations_since, 3);
  const std::string reason = record("straight")["result"]["stop_reason"];
  EXPECT_NE(reason.find("3 evaluations without a better validation loss than"), std::string::npos);
  EXPECT_NE(std::find(straight.said.begin(), straight.said.end(), "by " + reason),
            straight.said.end());
  // Cut in the middle of its patience, it ends where it would have ended. (Jobs in a shell's
  // background begin with this signal ignored, and stay so.)
  std::signal(SIGINT, SIG_DFL);
  InStep cuts(whole.best->step + 3, [](Control&) { std::raise(SIGINT); });
  EXPECT_EQ(watched("cut", {&cuts}, set).exit, ExitCode::Interrupted);
  const TrainResult resumed = watched("cut", {}, set, true);
  EXPECT_EQ(resumed.last_step, whole.last_step);
  EXPECT_EQ(resumed.best, whole.best);
  EXPECT_EQ(record("cut")["result"]["stop_reason"], reason);
  EXPECT_EQ(metrics("cut"), metrics("straight"));
  Witness again;
  EXPECT_EQ(watched("cut", {&again}, set, true).steps, 0);
  EXPECT_EQ(again.said.size(), 1u);
}

}  // namespace
}  // namespace aloft::e2e
