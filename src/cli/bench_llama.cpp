// A small Llama's training step to be timed: AdamW on made-up tokens.
#include <numeric>

#include "cli/model_bench.h"
#include "models/llama.h"
#include "optim/adam.h"
#include "runtime/threads.h"
#include "scalar/philox.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

constexpr std::int64_t kBatch = 4, kTokens = 256;

models::LlamaConfig config_of(const BenchOptions& o) {
  models::LlamaConfig c;
  const auto put = [](std::int64_t given, std::int64_t& to) { to = given > 0 ? given : to; };
  put(o.layers, c.layers);
  put(o.heads, c.heads);
  c.kv_heads = std::gcd(c.heads, c.kv_heads);  // no option sets it: it goes with any --heads
  put(o.dim, c.dim);
  put(o.vocab, c.vocab);
  return c;
}

class LlamaBench : public ModelBench<models::Llama> {
 public:
  explicit LlamaBench(const BenchOptions& o)
      : ModelBench(o, config_of(o), optim::AdamW{.lr = 1e-3}),
        batch_(o.batch > 0 ? o.batch : kBatch),
        tokens_(o.seq > 0 ? o.seq : kTokens),
        config_(config_of(o)) {
    const TensorType ids{DType::I32, Shape{batch_, tokens_}};
    compile({{"inputs", ids}, {"targets", ids}},
            [&](const std::vector<Tensor>& in) { return model_.loss(in[0], in[1]); });
  }
  void start() override {
    ModelBench::start();
    const auto vocab = static_cast<std::uint64_t>(config_.vocab);
    std::uint64_t drawn = 0;
    for (const char* name : {"inputs", "targets"}) {
      const auto to = programs_.input<std::int32_t>("train", name).write(batch_ * tokens_);
      for (std::int64_t i = 0; i < batch_ * tokens_; ++i)
        to[i] = static_cast<std::int32_t>(scalar::random_bits({1, 0, 0, 0}, drawn++) % vocab);
    }
  }
  json description() const override {
    return {{"model", "llama"},   {"precision", precision_},  {"batch", batch_},
            {"seq", tokens_},     {"layers", config_.layers}, {"heads", config_.heads},
            {"dim", config_.dim}, {"vocab", config_.vocab}};
  }
  std::string unit() const override { return "tokens"; }
  std::int64_t units_a_step() const override { return batch_ * tokens_; }

 private:
  std::int64_t batch_, tokens_;
  models::LlamaConfig config_;
};

}  // namespace

bool is_llama_model(const std::string& model) { return model == "llama"; }

std::unique_ptr<BenchSubject> open_llama_bench(const BenchOptions& o) {
  if (o.threads > 0) host_threads().set_count(o.threads);
  return std::make_unique<LlamaBench>(o);
}

}  // namespace aloft::cli
