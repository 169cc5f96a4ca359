// What the trainer's two modes and gradient accumulation must have in common.
#include "data/token_examples.h"
#include "e2e/small_run.h"
#include "frontend/amp.h"
#include "models/gpt2.h"
#include "optim/adamw.h"
#include "tasks/language_model.h"
#include "train/runner.h"
#include "types/tolerance.h"

namespace aloft::e2e {
namespace {

using Trainer = SmallRun;

std::vector<double> column(const std::vector<nlohmann::json>& lines, const char* key) {
  std::vector<double> values;
  for (const auto& line : lines)
    if (line.contains(key)) values.push_back(line[key].get<double>());
  return values;
}

void expect_close(const std::vector<double>& a, const std::vector<double>& b, double relative,
                  const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], relative * std::abs(b[i])) << what << " " << i;
}

// Dropout draws other numbers for other batches, so it is off here.
TEST_F(Trainer, FourMicroBatchesOfTwoAreABatchOfEight) {
  for (const char* mode : {"graph", "eager"})
    for (const char* precision : {"O0", "O2:fp16"}) {
      const std::string tail = std::string(mode) + precision[1];
      const std::vector<std::string> set = {"model.dropout=0", std::string("train.mode=") + mode,
                                            std::string("precision.level=") + precision};
      auto whole = set, parts = set;
      whole.insert(whole.end(), {"train.batch=8", "train.accumulate=1"});
      parts.insert(parts.end(), {"train.batch=2", "train.accumulate=4"});
      run("whole" + tail, whole);
      run("parts" + tail, parts);
      const auto a = metrics("parts" + tail), b = metrics("whole" + tail);
      // Twelve updates, each from gradients that were summed in another order and, in fp16, rounded
      // where the others were not. A gradient's norm is off by the gradients' own errors, of which
      // the loss sees the mean: ten times as much.
      constexpr int kUpdates = 12;
      const double tolerance = precision[1] == '0'
                                   ? tolerance_of(DType::F32).relative * std::sqrt(kUpdates)
                                   : chain_tolerance(DType::F16, kUpdates);
      expect_close(column(a, "loss"), column(b, "loss"), tolerance, "loss " + tail);
      expect_close(column(a, "val_loss"), column(b, "val_loss"), tolerance, "val_loss " + tail);
      expect_close(column(a, "grad_norm"), column(b, "grad_norm"), 10 * tolerance,
                   "grad_norm " + tail);
      EXPECT_EQ(column(a, "lr"), column(b, "lr"));
      EXPECT_EQ(column(a, "tokens"), column(b, "tokens"));
    }
}

TEST_F(Trainer, AccumulationResumesAndKeepsItsBitsOnAnyNumberOfThreads) {
  for (const char* mode : {"graph", "eager"}) {
    const std::string tail = mode;
    const std::vector<std::string> set = {"train.batch=2", "train.accumulate=3",
                                          std::string("train.mode=") + mode};
    auto one = set;
    one.push_back("train.threads=1");
    run("two" + tail, set);
    run("one" + tail, one);
    expect_same_state("two" + tail, "one" + tail);
    std::filesystem::remove_all(checkpoint("one" + tail, "step-000012"));
    EXPECT_EQ(run("one" + tail, one, true).steps, 4);
    expect_same_state("two" + tail, "one" + tail);
    EXPECT_EQ(metrics("one" + tail), metrics("two" + tail));
  }
}

// Samples on the way look at the model and change nothing.
TEST_F(Trainer, SamplingOnTheWayChangesNoBit) {
  for (const char* mode : {"graph", "eager"}) {
    const std::string tail = mode, set = "train.mode=" + tail;
    run("plain" + tail, {set});
    run("sampled" + tail, {set, "train.sample_every=5", "train.sample_tokens=20"});
    expect_same_state("plain" + tail, "sampled" + tail);
    EXPECT_EQ(metrics("plain" + tail), metrics("sampled" + tail));
    for (const char* file : {"step-000005.txt", "step-000010.txt", "step-000012.txt"})
      EXPECT_TRUE(std::filesystem::exists(folder_ / ("sampled" + tail) / "samples" / file)) << file;
  }
}

// Whatever the text lacks, a run ends with its sample.
TEST_F(Trainer, ATextOfOneLineIsSampledToo) {
  std::string text = small_text();
  std::replace(text.begin(), text.end(), '\n', ' ');
  folder_.put(folder_ / "text.txt", text);
  EXPECT_FALSE(run("line", {"train.steps=2", "train.sample_tokens=20"}).sample.empty());
}

// A scale at its ceiling overflows at first: those steps train nothing, and the data goes on.
TEST_F(Trainer, SkippedStepsAreNamedAndTheDataGoesOn) {
  for (const char* mode : {"graph", "eager"}) {
    const std::string out = std::string("skips") + mode;
    const TrainResult result =
        run(out, {R"(precision.loss_scale={kind = "dynamic", init = 16777216})",
                  std::string("train.mode=") + mode, "train.eval_every=0", "schedule.kind=linear",
                  "schedule.warmup=0"});
    EXPECT_GT(result.skipped, 1);
    EXPECT_LT(result.skipped, 12);
    std::int64_t skipped = 0;
    double rate = 0, scale = 16777216;
    bool waits = false;
    for (const auto& line : metrics(out)) {
      if (line.contains("val_loss")) continue;
      EXPECT_EQ(line["tokens"], line["step"].get<std::int64_t>() * 4 * 16);
      EXPECT_EQ(line["loss_scale"].get<double>(), scale);
      // The schedule moves on after an update, and only then.
      if (line["step"] > 1) {
        EXPECT_EQ(line["lr"].get<double>() == rate, waits) << line;
      }
      rate = line["lr"];
      waits = line["skipped"];
      if (waits) {
        ++skipped;
        scale /= 2;
        EXPECT_FALSE(line["culprit"].get<std::string>().empty());
      } else {
        EXPECT_FALSE(line.contains("culprit"));
      }
    }
    EXPECT_EQ(skipped, result.skipped);
    const auto manifest =
        nlohmann::json::parse(read_file(checkpoint(out, "step-000012") / "manifest.json", 1 << 20));
    EXPECT_EQ(manifest["data_position"], 12 * 4);
    EXPECT_EQ(manifest["step"], 12);
  }
}

// A run that the loss scaler gives up on leaves its record and its report behind.
TEST_F(Trainer, ARunThatDivergesIsReportedAllTheSame) {
  aloft::TrainOptions options;
  options.out = folder_ / "diverged";
  options.quiet = true;
  Path reported;
  options.report = [&](const Path& run) { reported = run; };
  const Recipe wild = recipe({"optimizer.lr=1e6", "schedule.kind=constant", "schedule.warmup=0",
                              "train.steps=200", "train.eval_every=0", "train.checkpoint_every=0",
                              R"(precision.loss_scale={kind = "dynamic", give_up_after = 30})"});
  try {
    run_training(wild, options);
    FAIL() << "it goes on";
  } catch (const DivergedError& e) {
    EXPECT_EQ(e.code(), "E0810");
  }
  EXPECT_EQ(reported, options.out);
  const auto record = nlohmann::json::parse(read_file(options.out / "run.json", 1 << 24));
  EXPECT_EQ(record["error"]["code"], "E0810");
  EXPECT_GT(record["result"]["peak_rss_bytes"].get<double>(), 1 << 20);
  EXPECT_GE(record["error"]["skipped"].get<int>(), 30);
  EXPECT_EQ(metrics("diverged").size(), record["error"]["step"].get<std::size_t>());
}

struct Runs : Observer {
  void program_begins(const ProgramEvent&) override { ++count; }
  int count = 0;
};

// The thread's own device stays what it is.
TEST_F(Trainer, RunsOnTheDeviceThatTheRecipeNames) {
  Device& before = current_device();
  Device& named = open_device("sim:delays=7");
  Runs here, there;
  {
    const Observing looking_here(before, here), looking_there(named, there);
    run("there", {"train.device=sim:delays=7"});
  }
  EXPECT_GT(there.count, 12);
  EXPECT_EQ(here.count, 0);
  EXPECT_EQ(&current_device(), &before);
  run("here");
  EXPECT_EQ(bytes("there", "step-000012", "model.safetensors"),
            bytes("here", "step-000012", "model.safetensors"));
}

// Same numbers from both runners, to the bit where no pass changes the arithmetic.
class Modes : public testing::TestWithParam<const char*> {};

std::vector<double> numbers(bool compiled, const char* precision, int accumulation) {
  use_cpu();
  manual_seed(4);
  models::Gpt2Config config;
  config.layers = 2;
  config.heads = 2;
  config.dim = 32;
  config.vocab = 29;
  config.context = 16;
  config.dropout = 0.1;
  LanguageModel task(std::make_unique<models::Gpt2>(config));
  Optimizer optimizer = amp::prepare(task.model(), optim::AdamW{.lr = 5e-3, .clip_norm = 1.0},
                                     parse_precision(precision));
  optimizer.set_accumulation(accumulation);
  constexpr std::int64_t kRows = 3;
  const std::vector<Column> columns{{"tokens", DType::I32, {config.context}, config.vocab},
                                    {"targets", DType::I32, {config.context}, config.vocab}};
  RunnerOptions options{kRows, columns, 2, {.skip = {"fuse-head"}}};
  const auto runner =
      compiled ? graph_runner(task, optimizer, options) : eager_runner(task, optimizer, options);
  runner->start();
  std::vector<double> all;
  std::vector<std::int32_t> inputs(kRows * config.context), targets(inputs.size());
  for (int call = 0; call < 12; ++call) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = static_cast<std::int32_t>((i * 7 + call * 5) % 29);
      targets[i] = static_cast<std::int32_t>((i * 7 + call * 5 + 7) % 29);
    }
    const ExampleBatch batch =
        example_batch({inputs, targets, call == 8 ? kRows - 1 : kRows, 0, 0, 0});
    if (call % accumulation != accumulation - 1) {
      all.push_back(runner->accumulate(batch));
      continue;
    }
    const StepNumbers n = runner->step(batch);
    all.insert(all.end(), {n.loss, n.grad_norm, n.lr, n.loss_scale, double(n.finite),
                           double(n.culprit), runner->evaluate(batch).front()});
  }
  return all;
}

TEST_P(Modes, TheRunnersGiveTheSameBits) {
  for (int accumulation : {1, 3}) {
    const auto graph = numbers(true, GetParam(), accumulation);
    const auto eager = numbers(false, GetParam(), accumulation);
    EXPECT_EQ(graph, eager) << accumulation;
    EXPECT_LT(graph[graph.size() - 7], graph[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Modes,
                         testing::Values("O0", "O1:fp16", "O2:bf16", "O2:fp16", "O3:fp16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

// With the fused head, the one rewrite that changes the arithmetic.
TEST_F(Trainer, TheModesAgreeWithinTheFusedHeadsTolerance) {
  for (const char* precision : {"O0", "O2:bf16"}) {
    const std::string level = std::string("precision.level=") + precision;
    const std::string tail = std::string(1, precision[1]);
    run("graph" + tail, {level});
    run("eager" + tail, {level, "train.mode=eager"});
    const double tolerance = precision[1] == '0' ? 1e-9 : 1e-9;
    for (const char* key : {"loss", "val_loss", "lr"})
      expect_close(column(metrics("graph" + tail), key), column(metrics("eager" + tail), key),
                   tolerance, key + tail);
  }
}

}  // namespace
}  // namespace aloft::e2e
