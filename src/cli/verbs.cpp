#include "cli/bench_step.h"
#include "cli/verb.h"

namespace aloft::cli {

Action bench_verb(CLI::App& app);
Action data_verb(CLI::App& app);
Action devices_verb(CLI::App& app);
Action doctor_verb(CLI::App& app);
Action eval_verb(CLI::App& app);
Action explain_verb(CLI::App& app);
Action export_verb(CLI::App& app);
Action generate_verb(CLI::App& app);
Action ops_verb(CLI::App& app);
Action passes_verb(CLI::App& app);
Action probe_verb(CLI::App& app);
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
      {"eval", "Loss of a model on texts or JSON lines; of a classifier its accuracy",
       "aloft eval runs/first --data text.txt --length 256\n"
       "  aloft eval runs/tuned --data held-out.jsonl",
       eval_verb},
      {"export", "Write a trained model for other programs",
       "aloft export hf runs/first gpt-cpp-hf", export_verb},
      {"bench", "Time a training step or a model's text, beside the machine's limit",
       "aloft bench step --model " + usual_model() + " --batch 4 --precision O2:bf16 --json",
       bench_verb},
      {"probe", "See the numbers inside of training steps",
       "aloft probe run recipes/gpt-cpp.toml --out probed", probe_verb},
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
