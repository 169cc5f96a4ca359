#include <fmt/format.h>

#include <charconv>

#include "base/process.h"
#include "base/text.h"
#include "cli/verb.h"

namespace aloft::cli {

CLI::Validator at_least(std::int64_t least) {
  return {[least](std::string& text) -> std::string {
            const auto value = parse_int(text);
            if (value && *value >= least) return "";
            return "need a whole number, " + std::to_string(least) + " or more, got " + text;
          },
          ""};
}

CLI::Validator number_between(double least, double most) {
  return {[least, most](std::string& text) -> std::string {
            double value = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            const bool is_whole = error == std::errc() && end == text.data() + text.size();
            if (is_whole && value >= least && value <= most) return "";
            return fmt::format("need a number from {:g} to {:g}, got {}", least, most, text);
          },
          ""};
}

CLI::Validator thread_count() {
  return {[](std::string& text) -> std::string {
            const auto value = parse_int(text);
            if (value && *value >= 0 && *value <= kMostThreads) return "";
            return "need a whole number, 0 or more and at most " + std::to_string(kMostThreads) +
                   ", got " + text;
          },
          ""};
}

Action bench_verb(CLI::App& app);
Action data_verb(CLI::App& app);
Action devices_verb(CLI::App& app);
Action doctor_verb(CLI::App& app);
Action explain_verb(CLI::App& app);
Action generate_verb(CLI::App& app);
Action ops_verb(CLI::App& app);
Action passes_verb(CLI::App& app);
Action recipes_verb(CLI::App& app);
Action report_verb(CLI::App& app);
Action score_verb(CLI::App& app);
Action train_verb(CLI::App& app);

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = {
      {"train", "Train a model as a recipe says",
       "aloft train recipes/gpt-cpp.toml --set train.steps=100 --out runs/first", train_verb},
      {"report", "Make report.html of a run anew", "aloft report runs/first", report_verb},
      {"generate", "Write text with a trained model",
       "aloft generate runs/first --prompt \"#include <\" --tokens 200 --top-k 40", generate_verb},
      {"score", "Logits, loss and gradients of a model for given tokens",
       "aloft score runs/first --tokens in.safetensors --out out.safetensors --grads", score_verb},
      {"bench", "Time a training step and compare it with the machine's limit",
       "aloft bench step --model gpt2-124m --batch 4 --seq 256 --precision O2:bf16 --json",
       bench_verb},
      {"data", "Build or inspect the tokens of a recipe", "aloft data build recipes/gpt-cpp.toml",
       data_verb},
      {"explain", "Precision, plan, graph or kernels of a recipe",
       "aloft explain precision recipes/gpt-cpp.toml", explain_verb},
      {"ops", "Every op: class, gradient, kernels", "aloft ops 'conv*' --json", ops_verb},
      {"passes", "What the compiler does, in order", "aloft passes --run simplify,cse step.graph",
       passes_verb},
      {"recipes", "Recipes, and every key of one", "aloft recipes", recipes_verb},
      {"devices", "Devices there are; this processor and how fast it is, measured",
       "aloft devices --json", devices_verb},
      {"doctor", "What could keep this machine from training well", "aloft doctor", doctor_verb},
  };
  return all;
}

}  // namespace aloft::cli
