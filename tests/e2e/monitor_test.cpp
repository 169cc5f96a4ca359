// Runs that are monitored: the same bits, numbers that add up, alerts that are deserved, and none
// lost or new where a run goes on.
#include <cmath>

#include "base/error.h"
#include "e2e/small_run.h"
#include "observe/trends/trend_watch.h"
#include "run/listener.h"

namespace aloft::e2e {
namespace {

using nlohmann::json;

// Short windows, for short runs.
const std::vector<std::string> kOn = {"monitor.on=true", "monitor.every=1",
                                      "monitor.norm_jump={threshold=1.2, window=3}",
                                      "monitor.loss_spike={threshold=1.01, window=3}"};

std::vector<std::string> with(std::vector<std::string> set, const std::vector<std::string>& more) {
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

class MonitoredRun : public SmallRun {
 protected:
  // Lines of metrics.jsonl that have the key.
  std::vector<json> lines(const std::string& out, const char* key) const {
    std::vector<json> found;
    for (json& line : metrics(out))
      if (line.contains(key)) found.push_back(std::move(line));
    return found;
  }
  // "rule layer" of each alert.
  std::vector<std::string> alerts(const std::string& out, const std::string& rule) const {
    std::vector<std::string> found;
    for (const json& line : lines(out, "alert"))
      if (line["alert"] == rule) found.push_back(line.value("layer", ""));
    return found;
  }
  // A run that is expected to end badly.
  void run_whatever_comes(const std::string& out, const std::vector<std::string>& set) const {
    try {
      run(out, set);
    } catch (const Error&) {
    }
  }
};

TEST_F(MonitoredRun, ChangesNoBit) {
  run("plain");
  for (const char* every : {"1", "3"}) {
    const std::string out = std::string("on") + every;
    run(out, {"monitor.on=true", "monitor.every=" + std::string(every)});
    expect_same_state("plain", out);
    std::vector<json> others;
    for (json& line : metrics(out))
      if (!line.contains("trends") && !line.contains("alert")) others.push_back(std::move(line));
    EXPECT_EQ(others, metrics("plain"));
    EXPECT_EQ(lines(out, "trends").size(), every[0] == '1' ? 12U : 4U);
  }
  EXPECT_TRUE(lines("plain", "trends").empty());
}

// Each number of each look of the compiled run, beside that of the eager one.
void expect_same_numbers(const json& compiled, const json& eager, double tolerance) {
  ASSERT_GT(compiled["trends"].size(), 10U);
  EXPECT_EQ(compiled["step"], eager["step"]);
  for (const auto& [layer, own] : compiled["trends"].items())
    for (const auto& [name, number] : own.items()) {
      SCOPED_TRACE(layer + " " + name);
      ASSERT_TRUE(eager["trends"].contains(layer) && eager["trends"][layer].contains(name));
      const json& other = eager["trends"][layer][name];
      if (!number.is_number() || !other.is_number()) {
        EXPECT_EQ(other, number);
        continue;
      }
      const double want = number;
      EXPECT_NEAR(other.get<double>(), want, tolerance * std::abs(want));
    }
}

TEST_F(MonitoredRun, EagerStepsHaveTheNumbersAndAlertsOfCompiledOnes) {
  for (const std::string precision : {"O0", "O2:bf16", "O2:fp16"}) {
    SCOPED_TRACE(precision);
    const std::vector<std::string> set = with(kOn, {"precision.level=" + precision});
    const std::string graph = "graph-" + precision, eager = "eager-" + precision;
    run(graph, set);
    run(eager, with(set, {"train.mode=eager"}));
    const std::vector<json> compiled = lines(graph, "trends"), called = lines(eager, "trends");
    ASSERT_EQ(compiled.size(), 12U);
    ASSERT_EQ(called.size(), compiled.size());
    for (std::size_t i = 0; i < compiled.size(); ++i)
      expect_same_numbers(compiled[i], called[i], 0);
    EXPECT_FALSE(lines(graph, "alert").empty());
    EXPECT_EQ(lines(eager, "alert"), lines(graph, "alert"));
  }
}

// Of micro-batches sums are added up in another order: of the first step, which has the same
// parameters.
TEST_F(MonitoredRun, EagerStepsOfMicroBatchesHaveTheNumbersOfCompiledOnes) {
  const std::vector<std::string> set = {"monitor.on=true", "train.accumulate=2", "train.steps=1",
                                        "precision.level=O2:bf16"};
  run("graph", set);
  run("eager", with(set, {"train.mode=eager"}));
  expect_same_numbers(lines("graph", "trends").at(0), lines("eager", "trends").at(0), 1e-5);
}

TEST_F(MonitoredRun, ChangesNoBitOfAnEagerRun) {
  run("plain", {"train.mode=eager"});
  run("on", {"train.mode=eager", "monitor.on=true", "monitor.every=3"});
  expect_same_state("plain", "on");
  EXPECT_EQ(lines("on", "trends").size(), 4U);
}

TEST_F(MonitoredRun, NormsOfLayersAreThoseOfTheStep) {
  run("on", {"monitor.on=true", "monitor.every=1", "train.accumulate=2"});
  const std::vector<json> looks = lines("on", "trends"), steps = lines("on", "loss");
  ASSERT_EQ(looks.size(), steps.size());
  int compared = 0;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (steps[i]["skipped"] == true) continue;
    double squares = 0;
    for (const auto& [layer, own] : looks[i]["trends"].items()) {
      if (own.contains("grad_norm")) squares += std::pow(own["grad_norm"].get<double>(), 2);
      if (own.contains("update_ratio")) {
        EXPECT_GT(own["update_ratio"], 0) << layer;
        EXPECT_LT(own["update_ratio"], 1) << layer;
      }
    }
    const double norm = steps[i]["grad_norm"];
    EXPECT_NEAR(std::sqrt(squares), norm, 1e-4 * norm) << i;
    ++compared;
  }
  EXPECT_GT(compared, 4);
}

TEST_F(MonitoredRun, SaysOfALayerWhatItGives) {
  run("on", {"monitor.on=true", "train.steps=1"});
  const json look = lines("on", "trends").at(0)["trends"];
  const json& linear = look["h.0.mlp.c_fc"];
  EXPECT_GT(linear["output_rms"], 0);
  EXPECT_GT(linear["output_outlier"], 1);
  EXPECT_LT(linear["output_exponent_low"], linear["output_exponent_high"]);
  EXPECT_LE(linear["gradient_exponent_high"], 15);  // fp16 has none above
  EXPECT_FALSE(linear.contains("output_nan"));
  EXPECT_TRUE(look["wte"].contains("weight_norm"));
}

TEST_F(MonitoredRun, GoesOnAsIfItHadNeverStopped) {
  run("whole", kOn);
  EXPECT_FALSE(lines("whole", "alert").empty());
  run("parts", with(kOn, {"train.steps=5", "schedule.steps=12"}));
  run("parts", kOn, true);
  for (const char* key : {"loss", "trends", "alert"}) {
    EXPECT_EQ(lines("whole", key), lines("parts", key)) << key;
    EXPECT_FALSE(lines("parts", key).empty());
  }
}

// A window that is rebuilt behind a return holds what the run keeps.
TEST_F(MonitoredRun, GoesBackWithItsWindows) {
  const std::vector<std::string> set =
      with(kOn, {"train.on_spike=rollback", "train.spike_factor=1.02", "optimizer.lr=0.3",
                 "precision.level=O2:bf16", "train.spike_window=4", "train.rollbacks=3",
                 "train.checkpoint_every=2"});
  run_whatever_comes("back", set);
  ASSERT_FALSE(lines("back", "rollback").empty());
  trends::TrendWatch watch({{}, {}, {}, {}, {1.01, 3}});
  std::vector<json> deserved, raised;
  for (const json& line : lines("back", "loss"))
    for (const TrendAlert& alert : watch.step(line["loss"], false))
      if (alert.rule == "loss_spike") deserved.push_back(line["step"]);
  for (const json& line : lines("back", "alert"))
    if (line["alert"] == "loss_spike") raised.push_back(line["step"]);
  EXPECT_EQ(raised, deserved);
}

TEST_F(MonitoredRun, RaisesNothingWhereAllIsWell) {
  run("well", {"monitor.on=true", "monitor.every=1", "train.steps=30"});
  EXPECT_TRUE(lines("well", "alert").empty()) << json(lines("well", "alert"));
}

TEST_F(MonitoredRun, ALearningRateThatJumpsIsSeen) {
  const std::vector<std::string> set = {"monitor.on=true",
                                        "monitor.every=1",
                                        "schedule.kind=constant",
                                        "precision.level=O2:bf16",
                                        "optimizer.clip_norm=0",
                                        "monitor.norm_jump={threshold=6, window=5}",
                                        "monitor.loss_spike.window=5"};
  run("jump", with(set, {"train.steps=20", "optimizer.lr=0.01"}));
  EXPECT_TRUE(lines("jump", "alert").empty()) << json(lines("jump", "alert"));
  try {
    aloft::TrainOptions options;
    options.out = folder_ / "jump";
    options.resume = true;
    options.quiet = true;
    run_training(recipe(with(set, {"train.steps=30", "optimizer.lr=3"})), options);
  } catch (const Error&) {
  }
  EXPECT_FALSE(alerts("jump", "loss_spike").empty());
  EXPECT_FALSE(alerts("jump", "norm_jump").empty());
  EXPECT_TRUE(alerts("jump", "saturation").empty());
  for (const json& line : lines("jump", "alert")) EXPECT_GT(line["step"], 20);
}

// The same weights that grow without end: fp16 holds what they give no more, bf16 does.
TEST_F(MonitoredRun, ValuesThatFp16DoesNotHoldAreSeen) {
  const std::vector<std::string> set = {"monitor.on=true", "monitor.every=1", "train.steps=8",
                                        "optimizer.lr=50.0", "schedule.warmup=0"};
  run_whatever_comes("fp16", with(set, {"precision.level=O2:fp16"}));
  EXPECT_FALSE(alerts("fp16", "saturation").empty());
  run_whatever_comes("bf16", with(set, {"precision.level=O2:bf16"}));
  EXPECT_TRUE(alerts("bf16", "saturation").empty());
}

// A scale that is far too high falls until gradients are finite: by design, and no alert. One that
// cannot fall is.
TEST_F(MonitoredRun, ASearchIsNoAlertAndAScaleThatStaysTooHighIs) {
  run("search", {"monitor.on=true", "monitor.every=1",
                 R"(precision={level="O2:fp16", loss_scale={kind="dynamic", init=16777216.0}})"});
  EXPECT_GT(lines("search", "culprit").size(), 2U);
  EXPECT_TRUE(lines("search", "alert").empty()) << json(lines("search", "alert"));
  run_whatever_comes("high",
                     {"monitor.on=true", "monitor.every=1", "train.steps=3",
                      R"(precision={level="O2:fp16", loss_scale={kind="static", init=1e30}})"});
  EXPECT_FALSE(alerts("high", "nan").empty());
}

// Gradients of weights overflow before those of what layers give: sums over all rows.
TEST_F(MonitoredRun, NoRunWhoseStepsAreAllSkippedIsWithoutAlert) {
  int skipping = 0;
  for (int exponent = 14; exponent <= 24; ++exponent) {
    const std::string name = "scale" + std::to_string(exponent);
    run_whatever_comes(name, {"monitor.on=true", "monitor.every=1", "train.steps=3",
                              R"(precision={level="O2:fp16", loss_scale={kind="static", init=)" +
                                  std::to_string(std::int64_t{1} << exponent) + ".0}}"});
    if (lines(name, "culprit").size() < 3) continue;
    ++skipping;
    EXPECT_FALSE(lines(name, "alert").empty()) << name;
  }
  EXPECT_GT(skipping, 2);
}

TEST_F(MonitoredRun, WhatTheProbeWritesIsAsWithout) {
  for (const std::string mode : {"graph", "eager"})
    for (const std::string task : {"statistics", "statistics:op", "overflow"}) {
      const std::string level = task.ends_with(":op") ? "op" : "module";
      std::vector<std::string> probe = {"train.steps=3", "train.mode=" + mode,
                                        "probe.task=" + task.substr(0, task.find(':'))};
      if (task != "overflow") probe.push_back("probe.level=" + level);
      const std::string name = task + mode;
      run(name, probe);
      run(name + "-monitored", with(probe, {"monitor.on=true", "monitor.every=2"}));
      const char* file = task == "overflow" ? "overflow.json" : "step1/rank/dump.json";
      EXPECT_EQ(read_file(folder_ / name / "probe" / file),
                read_file(folder_ / (name + "-monitored") / "probe" / file))
          << name;
      if (task != "overflow") {
        EXPECT_EQ(read_file(folder_ / name / "probe" / "missing.json"),
                  read_file(folder_ / (name + "-monitored") / "probe" / "missing.json"));
      }
      EXPECT_EQ(lines(name + "-monitored", "trends").size(), 2U);
    }
}

struct Hears : Listener {
  void step_done(const StepDone& e, Control&) override { order.push_back(e.step); }
  void trends_seen(const TrendsSeen& e, Control& run) override {
    order.push_back(-e.step);
    alerts += e.alerts.size();
    if (!e.alerts.empty()) run.stop("an alert");
  }
  std::vector<std::int64_t> order;
  std::size_t alerts = 0;
};

TEST_F(MonitoredRun, ListenersHearOfItBehindTheStep) {
  Hears hears;
  aloft::TrainOptions options;
  options.out = folder_ / "heard";
  options.quiet = true;
  options.listeners = {&hears};
  run_training(recipe({"monitor.on=true", "monitor.every=2", "train.steps=12",
                       "monitor.loss_spike={threshold=1.0001, window=2}", "optimizer.lr=0.5",
                       "precision.level=O2:bf16"}),
               options);
  ASSERT_GE(hears.order.size(), 3U);
  EXPECT_EQ(hears.order[0], 1);
  EXPECT_EQ(hears.order[1], -1);
  EXPECT_EQ(hears.order[2], 2);
  EXPECT_GT(hears.alerts, 0U);
  EXPECT_LT(hears.order.size(), 24U);
}

constexpr const char* kDense = R"([model]
family = "mlp"
hidden = [16, 8]
activation = "relu"
[data]
csv = "table.csv"
validation = 0.25
[precision]
level = "O0"
[optimizer]
kind = "sgd"
lr = 0.01
clip_norm = 0.0
[train]
batch = 8
steps = 12
threads = 1
[monitor]
on = true
every = 1
)";

// Behind one step that is far too long no unit of the first layers is above 0 any more: nothing
// reaches them.
TEST_F(MonitoredRun, LayersThatHaveDiedAreSeen) {
  std::string table;
  for (int i = 0; i < 64; ++i)
    table += std::to_string(1 + i % 5) + "," + std::to_string(2 + i % 7) + "," +
             std::to_string(3 + i % 3) + "," + std::to_string(i % 3) + "\n";
  folder_.put(folder_ / "table.csv", table);
  folder_.put(folder_ / "dense.toml", kDense);
  const auto train = [&](const char* out, const std::vector<std::string>& set) {
    aloft::TrainOptions options;
    options.out = folder_ / out;
    options.quiet = true;
    try {
      run_training(load_recipe(folder_ / "dense.toml", overrides_of(set)), options);
    } catch (const Error&) {
    }
  };
  train("alive", {});
  EXPECT_TRUE(lines("alive", "alert").empty()) << json(lines("alive", "alert"));
  train("dead", {"optimizer.lr=100.0", "train.steps=8"});
  EXPECT_FALSE(alerts("dead", "dead_layer").empty());
}

}  // namespace
}  // namespace aloft::e2e
