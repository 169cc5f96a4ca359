// A tiny GPT on text: every precision, eager and compiled to the same bits, dropout included; and
// decoding with a cache against the whole sequence at once.
#include <gtest/gtest.h>

#include "base/error.h"
#include "e2e/training.h"
#include "frontend/programs.h"
#include "models/gpt2.h"
#include "models/model_spec.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "optim/adamw.h"
#include "types/tolerance.h"

namespace aloft::e2e {
namespace {

using models::Gpt2;
using models::Gpt2Config;

constexpr std::int64_t kBatch = 4, kLength = 16;

Gpt2Config tiny(double dropout = 0) {
  Gpt2Config c;
  c.layers = 2;
  c.heads = 2;
  c.dim = 32;
  c.vocab = 27;
  c.context = kLength;
  c.dropout = dropout;
  return c;
}

struct TinyGpt : Gpt2 {
  TinyGpt() : Gpt2(tiny()) {}
};
struct DroppingGpt : Gpt2 {
  DroppingGpt() : Gpt2(tiny(0.1)) {}
};

// A sentence again and again, from a place that depends on step and row: letters and blanks.
Batch sentences(int step) {
  const std::string text =
      "what is written once is read many times so write it plainly and test what you claim ";
  const std::int64_t rows = step % 5 == 4 ? kBatch - 1 : kBatch;
  std::vector<std::int32_t> tokens, targets;
  const auto id = [&](std::size_t i) {
    const char c = text[i % text.size()];
    return c == ' ' ? 26 : c - 'a';
  };
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t t = 0; t < kLength; ++t) {
      const auto at = static_cast<std::size_t>(step * 37 + r * 19 + t);
      tokens.push_back(id(at));
      targets.push_back(id(at + 1));
    }
  targets[0] = -100;  // ignored
  return {from_ints(tokens, {rows, kLength}), from_ints(targets, {rows, kLength})};
}

const auto kLoss = [](auto& net, const Tensor& x, const Tensor& label) {
  return cross_entropy(net(x), label);
};

// The one rewrite that changes the arithmetic; a test of its own holds it to a tolerance.
const std::vector<std::string> kExempt = {"fuse-head"};

TrainOptions options(Mode mode, const std::string& precision, int threads = 2) {
  return {mode, precision, 30, threads, 3, optim::AdamW{.lr = 5e-3, .clip_norm = 1.0}, kExempt};
}

DType rounded_in(const std::string& precision) {
  if (precision == "O0") return DType::F32;
  return precision.find("fp16") != std::string::npos ? DType::F16 : DType::BF16;
}

class GptPrecision : public testing::TestWithParam<const char*> {};

TEST_P(GptPrecision, EagerEqualsCompiledAndTheLossFalls) {
  const Outcome eager = train<TinyGpt>(options(Mode::Eager, GetParam()), sentences, kLoss);
  const Outcome compiled = train<TinyGpt>(options(Mode::Compiled, GetParam()), sentences, kLoss);
  EXPECT_EQ(eager.losses, compiled.losses);
  EXPECT_EQ(eager.grad_norms, compiled.grad_norms);
  EXPECT_EQ(differing(eager, compiled), std::vector<std::string>());
  EXPECT_LT(compiled.last(), 0.7 * compiled.first());
}

TEST_P(GptPrecision, TheFusedHeadStaysWithinRoundingOfTheUnfused) {
  TrainOptions o = options(Mode::Compiled, GetParam());
  o.steps = 10;
  const Outcome plain = train<TinyGpt>(o, sentences, kLoss);
  o.skip = {};
  const Outcome fused = train<TinyGpt>(o, sentences, kLoss);
  // The unfused head rounds the logits, and their gradients in every step behind.
  for (int step = 0; step < o.steps; ++step)
    EXPECT_NEAR(fused.losses[step], plain.losses[step],
                chain_tolerance(rounded_in(GetParam()), 2 * (step + 1)) * plain.losses[0])
        << step;
}

// Losses of steps of two micro-batches, each with a weight that its data brings; `sweeps` receives
// how often one program computes loss and gradients of the head in one.
std::vector<double> weighed_losses(const char* precision, const std::vector<std::string>& skip,
                                   int& sweeps) {
  use_cpu();
  eager().clear_tape();
  manual_seed(3);
  TinyGpt model;
  auto [net, opt] =
      amp::initialize(model, optim::AdamW{.lr = 5e-3, .clip_norm = 1.0}, std::string(precision));
  opt.set_accumulation(2);
  const auto loss = [&net = net](const Tensor& x, const Tensor& label) {
    return cross_entropy(net(x), label) * max(cast(label, DType::F32)) / 20;
  };
  const auto add = [&, &opt = opt](const Tensor& x, const Tensor& label) {
    return accumulate(loss(x, label), opt);
  };
  const auto update = [&, &opt = opt](const Tensor& x, const Tensor& label) {
    return minimize(loss(x, label), opt);
  };
  auto adds = compile(add, {.name = "add", .threads = 2, .passes = {.skip = skip}});
  auto updates = compile(update, {.name = "update", .threads = 2, .passes = {.skip = skip}});
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) {
    const Batch a = sentences(2 * step), b = sentences(2 * step + 1);
    losses.push_back(adds(a.x, a.label).item());
    losses.push_back(updates(b.x, b.label).loss());
  }
  sweeps = 0;
  for (const auto& [programs, name] :
       {std::pair(&adds.programs(), "add"), std::pair(&updates.programs(), "update")})
    for (const Instruction& i : programs->plan().find(name)->instructions)
      sweeps += i.call.op == Name("linear_cross_entropy_sweep");
  return losses;
}

// The weight stands between the loss and what is differentiated.
TEST_P(GptPrecision, TheHeadOfWeighedMicroBatchesIsSweptOnceAndWithinRounding) {
  int sweeps = 0, none = 0;
  const std::vector<double> fused = weighed_losses(GetParam(), {}, sweeps);
  const std::vector<double> plain = weighed_losses(GetParam(), kExempt, none);
  EXPECT_EQ(sweeps, 2);
  EXPECT_EQ(none, 0);
  for (std::size_t i = 0; i < fused.size(); ++i) {
    const int roundings = 2 * (static_cast<int>(i) / 2 + 1);
    const double limit = chain_tolerance(rounded_in(GetParam()), roundings) * plain[0];
    EXPECT_NEAR(fused[i], plain[i], limit) << i;
  }
}

TEST_P(GptPrecision, FusedNormsAndEmbeddingGradientsDoNotChangeABit) {
  TrainOptions o = options(Mode::Compiled, GetParam());
  o.steps = 8;
  const Outcome fused = train<TinyGpt>(o, sentences, kLoss);
  o.skip.insert(o.skip.end(), {"fuse-norm", "fuse-embedding-gradient"});
  const Outcome plain = train<TinyGpt>(o, sentences, kLoss);
  EXPECT_EQ(fused.losses, plain.losses);
  EXPECT_EQ(fused.grad_norms, plain.grad_norms);
  EXPECT_EQ(differing(fused, plain), std::vector<std::string>());
}

TEST_P(GptPrecision, ThreadsDoNotChangeABit) {
  TrainOptions o = options(Mode::Compiled, GetParam());
  o.steps = 8;
  o.skip = {};
  const Outcome two = train<TinyGpt>(o, sentences, kLoss);
  for (int threads : {1, 4}) {
    o.threads = threads;
    const Outcome other = train<TinyGpt>(o, sentences, kLoss);
    EXPECT_EQ(two.losses, other.losses) << threads;
    EXPECT_EQ(differing(two, other), std::vector<std::string>()) << threads;
  }
}

TEST_P(GptPrecision, DropoutDrawsTheSameNumbersInBothModes) {
  TrainOptions o = options(Mode::Eager, GetParam());
  o.steps = 6;
  const Outcome eager = train<DroppingGpt>(o, sentences, kLoss);
  o.mode = Mode::Compiled;
  const Outcome compiled = train<DroppingGpt>(o, sentences, kLoss);
  const Outcome plain = train<TinyGpt>(o, sentences, kLoss);
  EXPECT_EQ(eager.losses, compiled.losses);
  EXPECT_EQ(differing(eager, compiled), std::vector<std::string>());
  EXPECT_NE(compiled.losses, plain.losses);
}

const char* const kPrecisions[] = {"O0",      "O1:bf16", "O1:fp16", "O2:bf16",
                                   "O2:fp16", "O3:bf16", "O3:fp16", "O2:bf16 backward=f16"};
std::string name_of_precision(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, GptPrecision, testing::ValuesIn(kPrecisions), name_of_precision);

// Every family of language models, as small as can be.
class Decoding : public testing::TestWithParam<std::string> {};

TEST_P(Decoding, WithACacheEqualsTheWholeSequence) {
  use_cpu();
  manual_seed(5);
  models::ModelSpec spec{models::find_family(GetParam()), {}};
  spec.settings = spec.family->defaults();
  const std::pair<const char*, std::int64_t> sizes[] = {{"layers", 2},   {"heads", 4},
                                                        {"kv_heads", 2}, {"dim", 32},
                                                        {"vocab", 27},   {"context", kLength}};
  for (const auto& [key, value] : sizes)
    if (spec.family->find(key)) spec.settings[key] = value;
  const auto made = models::make_causal_lm(spec);
  models::CausalLm& model = *made;
  model.eval();
  std::vector<std::int32_t> ids;
  for (int t = 0; t < kLength; ++t) ids.push_back((t * 7 + 3) % 27);
  NoGrad no_grad;
  const std::vector<double> whole = model(from_ints(ids, {1, kLength})).to_vector();

  models::DecodeCache cache = model.make_cache(1, kLength, DType::F32);
  Programs programs(2);
  constexpr int kPrefill = 5;
  programs.add("prefill", {{"tokens", {DType::I32, {1, kPrefill}}}}, [&](const auto& in) {
    model.prefill(in[0], cache);
    return std::vector<std::pair<std::string, Tensor>>{};
  });
  programs.add("decode", {{"tokens", {DType::I32, {1, 1}}}}, [&](const auto& in) {
    return std::vector<std::pair<std::string, Tensor>>{{"logits", model.decode(in[0], cache)}};
  });
  programs.finish();
  const int prefill = programs.find("prefill"), decode = programs.find("decode");
  for (int round = 0; round < 2; ++round) {  // the second on a cleared, dirty cache
    cache.clear();
    programs.input<std::int32_t>("prefill", "tokens").set(std::span(ids).first(kPrefill));
    programs.run(prefill, {});
    for (int t = kPrefill; t < kLength; ++t) {
      programs.input<std::int32_t>("decode", "tokens").set(std::span(ids).subspan(t, 1));
      programs.run(decode, {});
      const auto logits = programs.output<float>("decode", "logits").read();
      // Sums of at most 4 x 32 terms, one behind the other in two layers of four products.
      for (int v = 0; v < 27; ++v)
        EXPECT_NEAR(logits[v], whole[t * 27 + v], 8 * allowed_error(DType::F32, 128, 1, 1))
            << t << " " << v;
    }
  }
}

std::vector<std::string> language_models() {
  std::vector<std::string> names;
  for (const models::ModelFamily& f : models::families())
    if (f.make_causal_lm) names.emplace_back(f.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Families, Decoding, testing::ValuesIn(language_models()),
                         [](const auto& info) { return info.param; });

TEST(Gpt, TokensThatDoNotFitAreRefused) {
  use_cpu();
  Gpt2 model(tiny());
  const Tensor tokens = from_ints(std::vector<std::int32_t>(kLength + 1), {1, kLength + 1});
  EXPECT_THROW(model(tokens), UserError);
  EXPECT_THROW(models::gpt2_config("gpt2-124"), UserError);
  EXPECT_EQ(models::gpt2_config("gpt2").layers, 12);
  EXPECT_EQ(models::parameter_count(models::spec_of("gpt2", models::gpt2_config("gpt2-124m"))),
            124475904);
}

}  // namespace
}  // namespace aloft::e2e
