// What a run directory promises: a run goes on with its own data and its own numbers or says why
// not, and its record has every line up to its newest checkpoint whenever it was killed.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "base/error.h"
#include "base/folder.h"
#include "e2e/small_run.h"
#include "files/tensorboard.h"
#include "start_program.h"

namespace aloft::e2e {
namespace {

namespace fs = std::filesystem;

class RunDirectory : public SmallRun {
 protected:
  // What going on with run "first" for four steps more is refused with; "" where it is not.
  std::string refusal(std::vector<std::string> set, bool force = false) const {
    set.insert(set.begin(), "train.steps=16");
    fs::remove_all(folder_ / "copy");
    fs::copy(folder_ / "first", folder_ / "copy", fs::copy_options::recursive);
    aloft::TrainOptions options;
    options.out = folder_ / "copy";
    options.resume = true;
    options.force = force;
    options.quiet = true;
    try {
      run_training(recipe(set), options);
    } catch (const UserError& e) {
      EXPECT_EQ(metrics("copy"), metrics("first")) << "a refused run has changed its record";
      return e.what();
    }
    return "";
  }
  nlohmann::json record(const std::string& out) const {
    return nlohmann::json::parse(read_file(folder_ / out / "run.json", 1 << 26));
  }
  // Scalars in the event files of a run: tag and step, without what a clock decides.
  std::string events(const std::string& out) const {
    std::string all;
    for (const Path& path : list_folder(folder_ / out))
      if (path.filename().string().starts_with(kEventFile)) all += read_file(path, 1 << 26);
    return all;
  }
  static std::size_t count(const std::string& text, const std::string& word) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++n;
    return n;
  }
};

TEST_F(RunDirectory, ItGoesOnWithItsOwnTokenizerOrSaysThatTheTextIsAnotherOne) {
  fs::create_directory(folder_ / "texts");
  folder_.put(folder_ / "texts" / "a.txt", small_text());
  folder_.put(folder_ / "texts" / "b.txt", small_text().substr(0, 5000));
  const std::string text = "data.text=" + (folder_ / "texts").string();
  run("first", {text, "data.tokenizer.byte_fallback=true"});
  const std::string tokenizer = read_file(folder_ / "first" / "tokenizer" / "aloft_tokenizer.json");
  const std::vector<std::string> same = {text, "data.tokenizer.byte_fallback=true"};
  EXPECT_EQ(refusal(same), "");
  EXPECT_EQ(metrics("copy").size(), metrics("first").size() + 6);  // 4 steps, 2 evaluations
  // Without its cache, and with files that are newer: the same tokens, made by its own tokenizer.
  fs::remove_all(folder_ / "cache");
  fs::last_write_time(folder_ / "texts" / "a.txt", fs::file_time_type::clock::now());
  EXPECT_EQ(refusal(same), "");
  // A new file: its letters would make another tokenizer, and weights mean other letters.
  folder_.put(folder_ / "texts" / "c.txt", "#QUITE% OTHER& LETTERS!" + small_text());
  const std::string said = refusal(same);
  for (const char* part : {"E0818", "a new file: c.txt", "training tokens: ", "--force"})
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
  EXPECT_EQ(refusal(same, true), "");
  EXPECT_EQ(read_file(folder_ / "copy" / "tokenizer" / "aloft_tokenizer.json"), tokenizer);
  EXPECT_TRUE(record("copy")["history"].back().contains("data_before"));
  fs::remove(folder_ / "texts" / "c.txt");
  folder_.put(folder_ / "texts" / "b.txt", small_text().substr(0, 5001));
  EXPECT_NE(refusal(same).find("b.txt had 5000 bytes, now 5001"), std::string::npos);
}

TEST_F(RunDirectory, TokenFilesAreHeldToTheirContent) {
  std::string tokens;
  for (int i = 0; i < 3000; ++i) tokens += {static_cast<char>(i * i % 90), '\0'};
  folder_.put(folder_ / "t.bin", tokens);
  const std::vector<std::string> set = {"data.train_tokens=" + (folder_ / "t.bin").string(),
                                        "model.vocab=90"};
  run("first", set);
  EXPECT_EQ(refusal(set), "");
  tokens[100] = static_cast<char>(tokens[100] + 1);
  folder_.put(folder_ / "t.bin", tokens);
  EXPECT_NE(refusal(set).find("E0818"), std::string::npos);
}

TEST_F(RunDirectory, EveryKeyOfARecipeIsComparedAsItsClassSays) {
  run("first", {});
  for (const char* free : {"train.threads=1", "train.eval_every=3", "train.checkpoint_every=2",
                           "train.keep_checkpoints=1", "train.mode=eager"})
    EXPECT_EQ(refusal({free}), "") << free;
  for (const auto& [set, key] : std::vector<std::pair<std::string, std::string>>{
           {"optimizer.lr=1e-4", "optimizer.lr"},
           {"train.seed=9", "train.seed"},
           {"train.batch=2", "train.batch"},
           {"model.dropout=0.2", "model.dropout"},
           {"schedule.kind=linear", "schedule.kind"},
           {"data.sampling=random", "data.sampling"}}) {
    EXPECT_EQ(refusal({set}), "") << set;
    const auto entry = record("copy")["history"].back();
    EXPECT_TRUE(entry["changed"].contains(key)) << entry;
    EXPECT_EQ(entry["step"], 12);
  }
  for (const auto& [set, key] : std::vector<std::pair<std::string, std::string>>{
           {"model.heads=4", "model.heads: 2, now 4"},  // the tensors fit all the same
           {"model.norm_eps=1e-3", "model.norm_eps"},
           {"model.dim=16", "model.dim"},
           {"model.context=8", "model.context"},
           {"optimizer.kind=sgd", "optimizer.kind"},
           {"data.tokenizer.kind=byte", "data.tokenizer.kind"},
           {"precision.level=O0", "precision"}}) {
    const std::string said = refusal({set}, true);
    EXPECT_NE(said.find("E0817"), std::string::npos) << set << said;
    EXPECT_NE(said.find(key), std::string::npos) << set << said;
  }
  EXPECT_NE(refusal({"data.validation=0.2"}).find("data.validation: 0.1, now 0.2"),
            std::string::npos);
}

TEST_F(RunDirectory, TheHistoryOfResumesIsKept) {
  run("first", {"train.steps=4"});
  const auto begun = record("first")["started"];
  run("first", {"train.steps=8"}, true);
  run("first", {"train.steps=12", "optimizer.lr=1e-3"}, true);
  const auto now = record("first");
  EXPECT_EQ(now["started"], begun);
  ASSERT_EQ(now["history"].size(), 2u);
  EXPECT_EQ(now["history"][0]["step"], 4);
  EXPECT_EQ(now["history"][0]["changed"]["train.steps"], nlohmann::json({4, 8}));
  EXPECT_EQ(now["history"][1]["changed"]["optimizer.lr"], nlohmann::json({5e-3, 1e-3}));
}

// The program itself, killed once `checkpoint` is there and `late` has passed.
void kill_after(const std::vector<std::string>& words, const fs::path& checkpoint,
                std::chrono::microseconds late) {
  const pid_t child = start_program(words);
  int status = 0;
  while (!fs::exists(checkpoint) && waitpid(child, &status, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  std::this_thread::sleep_for(late);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
}

TEST_F(RunDirectory, AfterAKillNoLineIsMissingAndNoneIsTwice) {
  const std::vector<std::string> set = {"train.steps=40", "train.checkpoint_every=3",
                                        "train.eval_every=4", "precision=O0", "train.threads=1"};
  run("straight", set);
  const std::size_t scalars = count(events("straight"), "train/lr");
  EXPECT_EQ(scalars, 40u);
  const std::string recipe = folder_ / "small.toml", out = folder_ / "killed";
  std::vector<std::string> words = {ALOFT_PROGRAM, "train", recipe, "--out", out, "--quiet"};
  for (const std::string& s : set) words.insert(words.end(), {"--set", s});
  for (int moment = 0; moment < 6; ++moment) {
    fs::remove_all(out);
    const std::string first = moment % 2 ? "step-000012" : "step-000003";
    kill_after(words, checkpoint("killed", first), std::chrono::microseconds(700 * moment));
    run("killed", set, true);
    EXPECT_EQ(metrics("killed"), metrics("straight")) << moment;
    EXPECT_EQ(count(events("killed"), "train/lr"), scalars) << moment;
    EXPECT_EQ(count(events("killed"), "validation/loss"),
              count(events("straight"), "validation/loss"));
    expect_same_state("straight", "killed", "step-000040");
  }
}

// Moves the folder of the run away behind a step.
class Mover : public Listener {
 public:
  Mover(Path from, Path to) : from_(std::move(from)), to_(std::move(to)) {}
  void step_done(const StepDone& e, Control&) override {
    if (e.step == 6) fs::rename(from_, to_);
  }

 private:
  const Path from_, to_;
};

TEST_F(RunDirectory, WhoMovesItIsToldWhereTheRestLies) {
  run("straight", {});
  Mover mover(folder_ / "run", folder_ / "moved");
  aloft::TrainOptions options;
  options.out = folder_ / "run";
  options.quiet = true;
  options.listeners = {&mover};
  set_log_level(LogLevel::Warning);
  testing::internal::CaptureStderr();
  run_training(recipe({"train.checkpoint_copy=false"}), options);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(said, "the run's folder was moved or removed"), 1u) << said;
  EXPECT_EQ(count(said, "from step 8 on"), 1u) << said;
  EXPECT_TRUE(fs::exists(checkpoint("moved", "step-000004")));
  EXPECT_EQ(metrics("moved"), metrics("straight"));
  expect_same_state("straight", "run", "step-000012");
}

}  // namespace
}  // namespace aloft::e2e
