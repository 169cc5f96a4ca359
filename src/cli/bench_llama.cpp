// A small Llama's training step to be timed: AdamW on made-up tokens.
#include <omp.h>

#include "cli/bench_step.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "models/llama.h"
#include "optim/adam.h"
#include "scalar/philox.h"
#include "train/recipe.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

constexpr std::int64_t kBatch = 4, kTokens = 256;

models::LlamaConfig config_of(const BenchOptions& o) {
  models::LlamaConfig c;
  const auto put = [](std::int64_t given, std::int64_t& to) { to = given > 0 ? given : to; };
  put(o.layers, c.layers);
  put(o.heads, c.heads);
  put(o.dim, c.dim);
  put(o.vocab, c.vocab);
  return c;
}

// Of a recipe's keys only the compiler's mean something here.
PipelineOptions passes_of(const BenchOptions& o) {
  std::vector<Override> set;
  for (const std::string& text : o.set) set.push_back(parse_override(text));
  return {parse_recipe("", "bench", set).train.skip_passes};
}

class LlamaBench : public BenchSubject {
 public:
  explicit LlamaBench(const BenchOptions& o)
      : batch_(o.batch > 0 ? o.batch : kBatch),
        tokens_(o.seq > 0 ? o.seq : kTokens),
        config_(config_of(o)),
        model_(config_),
        optimizer_(amp::initialize(model_, optim::AdamW{.lr = 1e-3},
                                   o.precision.empty() ? "O0" : o.precision)
                       .second),
        precision_(print_precision(parse_precision(o.precision.empty() ? "O0" : o.precision))),
        programs_(o.threads, passes_of(o)) {
    const TensorType ids{DType::I32, Shape{batch_, tokens_}};
    programs_.add("train", {{"inputs", ids}, {"targets", ids}}, [&](const std::vector<Tensor>& in) {
      return results::flatten(minimize(model_.loss(in[0], in[1]), optimizer_));
    });
    programs_.finish();
    std::uint64_t drawn = 0;
    for (const char* name : {"inputs", "targets"}) {
      auto* to = programs_.input<std::int32_t>("train", name);
      for (std::int64_t i = 0; i < batch_ * tokens_; ++i)
        to[i] = static_cast<std::int32_t>(scalar::random_bits({1, 0, 0, 0}, drawn++) %
                                          static_cast<std::uint64_t>(config_.vocab));
    }
    program_ = programs_.find("train");
    loss_ = programs_.output<float>("train", "loss");
  }
  Programs& programs() override { return programs_; }
  double step() override {
    programs_.run(program_, {});
    return *loss_;
  }
  json description() const override {
    return {{"model", "llama"}, {"precision", precision_}, {"batch", batch_}, {"seq", tokens_}};
  }
  std::string unit() const override { return "tokens"; }
  std::int64_t units_a_step() const override { return batch_ * tokens_; }

 private:
  std::int64_t batch_, tokens_;
  models::LlamaConfig config_;
  models::Llama model_;
  Optimizer optimizer_;
  std::string precision_;
  Programs programs_;
  int program_ = -1;
  const float* loss_ = nullptr;
};

}  // namespace

bool is_llama_model(const std::string& model) { return model == "llama"; }

std::unique_ptr<BenchSubject> open_llama_bench(const BenchOptions& o) {
  if (o.threads > 0) omp_set_num_threads(o.threads);
  return std::make_unique<LlamaBench>(o);
}

}  // namespace aloft::cli
