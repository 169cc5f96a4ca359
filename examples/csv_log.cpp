// A training as a recipe says, with somebody looking on: a listener writes each step into a file
// that a spreadsheet opens, and ends the run by a rule of its own. `aloft train` does all the rest
// here as it does there: the run directory has its record, metrics, checkpoints and report.
#include <aloft/aloft.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace aloft;

// loss.csv in the run's directory, a line a step; ends the run once the mean loss of the last ten
// steps is below a goal.
class CsvLog : public Listener {
 public:
  explicit CsvLog(double goal) : goal_(goal) {}
  std::string makes() const override { return "loss.csv"; }

  // A run that goes on writes the steps behind its checkpoint once more: what is there of them
  // goes.
  void run_begun(const RunBegun& e, Control&) override {
    const Path path = e.folder / "loss.csv";
    std::string kept = "step,loss,learning rate\n", line;
    std::ifstream before(path);
    std::getline(before, line);  // the names of the columns
    for (std::int64_t step = 1; step <= e.step && std::getline(before, line); ++step) {
      kept += line + "\n";
      newest_.push_back(std::stod(line.substr(line.find(',') + 1)));
    }
    file_.exceptions(std::ios::badbit | std::ios::failbit);  // a full disk ends the run
    file_.open(path);
    file_ << kept;
  }

  void step_done(const StepDone& e, Control& run) override {
    file_ << fmt::format("{},{},{}\n", e.step, e.loss, e.lr);
    newest_.push_back(e.loss);
    if (newest_.size() < kSteps) return;
    double mean = 0;
    for (std::size_t i = newest_.size() - kSteps; i < newest_.size(); ++i)
      mean += newest_[i] / kSteps;
    if (mean < goal_) run.stop(fmt::format("the mean loss is {:.3f}, below {}", mean, goal_));
  }

  // A run that goes on from here has every line up to it.
  void checkpoint_begun(const CheckpointBegun&) override { file_.flush(); }

 private:
  static constexpr std::size_t kSteps = 10;
  double goal_;
  std::vector<double> newest_;  // losses
  std::ofstream file_;
};

constexpr const char* kRecipe = R"(
[model]
layers = 1
dim = 32
heads = 2
context = 16
[data]
tokenizer = { kind = "char" }
[precision]
level = "O2:bf16"
[optimizer]
lr = 1e-2
[train]
batch = 8
steps = 400
checkpoint_every = 20
sample_tokens = 20
)";

int main() {
  const Path root = std::filesystem::temp_directory_path() / fmt::format("aloft-{}", getpid());
  std::filesystem::create_directories(root);
  std::ofstream text(root / "text.txt");
  for (int i = 0; i < 400; ++i) text << "the quick brown fox jumps over the lazy dog\n";
  text.close();

  // A file of its own would be read by load_recipe("recipe.toml").
  const Recipe recipe = parse_recipe(
      kRecipe, "csv_log.cpp",
      {{"data.text", (root / "text.txt").string()}, {"data.cache", (root / "cache").string()}});
  CsvLog log(1.0);
  TrainOptions options;
  options.out = root / "run";
  options.report = write_report;
  options.listeners = {&log};
  const TrainResult result = run_training(recipe, options);

  std::ifstream csv(options.out / "loss.csv");
  std::stringstream lines;
  lines << csv.rdbuf();
  fmt::print("{}", lines.str());
  fmt::print("ended behind step {} of {}, validation loss {:.3f}\n", result.last_step,
             recipe.train.steps, *result.val_loss);
  const bool is_reported = std::filesystem::exists(options.out / "report.html");
  std::filesystem::remove_all(root);
  return result.last_step < recipe.train.steps && is_reported ? 0 : 1;
}
