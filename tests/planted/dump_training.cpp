// dump_training FOLDER OUT [--program NAME] [KEY=VALUE...]: some training steps of the language
// model in a folder of Hugging Face, by a recipe that these settings change, on batches that are
// made up, dumped as `aloft probe run` dumps them. A NAME is a mistake in the program around it.
#include <cstdio>
#include <cstring>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "frontend/eager.h"
#include "frontend/module.h"
#include "models/huggingface.h"
#include "nn/layer.h"
#include "run/listener.h"
#include "train/probe_files.h"
#include "train/session.h"

namespace aloft {
namespace {

constexpr const char* kRecipe = R"(
[model]
family = "gpt2"
layers = 2
dim = 32
heads = 4
context = 24
vocab = 96
[precision]
level = "O0"
[optimizer]
kind = "adamw"
lr = 1e-3
weight_decay = 0.1
clip_norm = 1.0
[schedule]
kind = "cosine"
warmup = 2
steps = 8
[train]
batch = 4
accumulate = 2
steps = 4
[probe]
task = "statistics"
)";
constexpr std::int64_t kRows = 4, kLength = 24, kVocab = 96;

// The same numbers as made_up() in training.py.
std::int32_t token(std::int64_t batch, std::int64_t row, std::int64_t at) {
  return static_cast<std::int32_t>((31 * batch + 17 * row + 7 * at * at + 3 * at * row + 5 * at) %
                                   kVocab);
}

// Batches in order; `program` is a mistake in handing them out.
class MadeUp {
 public:
  explicit MadeUp(std::string program) : program_(std::move(program)) {}
  ExampleBatch batch(std::int64_t number) {
    if (program_ == "batches exchanged") number ^= 2;
    if (program_ == "batch twice" && number >= 4) --number;
    columns_[0].clear(), columns_[1].clear();
    const std::int64_t ahead = program_ == "targets not shifted" ? 0 : 1;
    for (std::int64_t row = 0; row < kRows; ++row)
      for (std::int64_t at = 0; at < kLength; ++at) {
        columns_[0].push_back(token(number, row, at));
        columns_[1].push_back(token(number, row, at + ahead));
      }
    ExampleBatch made;
    for (const auto& column : columns_) made.columns.push_back(std::as_bytes(std::span(column)));
    made.rows = kRows;
    made.counted_targets = kRows * kLength;
    return made;
  }

 private:
  std::string program_;
  std::vector<std::int32_t> columns_[2];
};

void dump(const Path& folder, const Path& out, const std::string& program,
          const std::vector<Override>& set) {
  use_device(cpu_device());
  const Recipe recipe = parse_recipe(kRecipe, "training", set);
  Session session = open_session(recipe, {}, {});
  std::unique_ptr<Runner> runner = make_runner(session);
  make_values(session);
  const models::HuggingFaceFolder opened = models::open_huggingface(folder);
  if (program != "weights not loaded") models::load_huggingface(opened, session.model());
  runner->start();

  ProbeFiles files(session, runner, out);
  Control control;
  const std::vector<Rollback> rollbacks;
  files.run_begun({out, task_kind(recipe), rollbacks}, control);
  MadeUp batches(program);
  const std::int64_t parts = recipe.train.accumulate;
  std::int64_t number = 0;
  for (std::int64_t step = 0; step < recipe.train.steps; ++step) {
    StepDone done;
    for (std::int64_t part = 0; part + 1 < parts; ++part) {
      done.loss += runner->accumulate(batches.batch(number));
      if (program != "micro-batch twice") ++number;
    }
    const StepNumbers n = runner->step(batches.batch(number++), step);
    done.step = step + 1;
    done.loss = (done.loss + n.loss) / static_cast<double>(parts);
    done.lr = n.lr, done.grad_norm = n.grad_norm, done.loss_scale = n.loss_scale;
    done.skipped = !n.finite;
    files.step_done(done, control);
  }
}

}  // namespace
}  // namespace aloft

int main(int count, char** arguments) {
  if (count < 3)
    return std::fputs("dump_training FOLDER OUT [--program NAME] [KEY=VALUE...]\n", stderr), 2;
  try {
    std::string program;
    std::vector<aloft::Override> set;
    for (int i = 3; i < count; ++i)
      if (std::strcmp(arguments[i], "--program") == 0 && i + 1 < count)
        program = arguments[++i];
      else
        set.push_back(aloft::parse_override(arguments[i]));
    aloft::dump(arguments[1], arguments[2], program, set);
    return 0;
  } catch (const aloft::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return static_cast<int>(e.exit_code());
  }
}
