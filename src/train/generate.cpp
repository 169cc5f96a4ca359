#include "train/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "ops/cast.h"
#include "precision/decide.h"
#include "scalar/philox.h"

namespace aloft {
namespace {

// The type that attention computes in under the model's policy.
DType cache_type(const models::Gpt2& model) {
  if (!model.policy()) return DType::F32;
  const PrecisionRecipe recipe = parse_precision(model.policy().str());
  return recipe.level == Level::O0 ? DType::F32 : recipe.type_in(Phase::Forward);
}

// Tokens of a prompt that are fed at once: enough to read the weights seldom, few enough for the
// activations to stay small.
constexpr std::int64_t kStretch = 64;

}  // namespace

std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& o,
                          std::int64_t index) {
  ensure(!logits.empty(), "there are logits to sample from");
  const auto bad = std::find_if(logits.begin(), logits.end(), [](float x) {
    return !(x < std::numeric_limits<float>::infinity());
  });
  if (bad != logits.end())
    throw DivergedError("E0813", "the model's logits are not finite")
        .saw(std::to_string(*bad) + " for token " + std::to_string(bad - logits.begin()))
        .need("numbers below infinity")
        .advice("generate from an earlier checkpoint, or with --precision O0");
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  if (o.temperature <= 0) return *std::min_element(order.begin(), order.end(), likelier);
  if (o.top_k > 0 && o.top_k < static_cast<std::int64_t>(order.size())) {
    std::nth_element(order.begin(), order.begin() + (o.top_k - 1), order.end(), likelier);
    order.resize(o.top_k);
  }
  std::sort(order.begin(), order.end(), likelier);
  std::vector<double> weight(order.size());
  double total = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    total += weight[i] = std::exp((logits[order[i]] - logits[order[0]]) / o.temperature);
  double kept = 0;
  std::size_t count = 0;
  while (count < order.size() && (count == 0 || kept < o.top_p * total)) kept += weight[count++];
  double at = scalar::uniform({o.seed, 0, 0, 0x67656e}, static_cast<std::uint64_t>(index)) * kept;
  for (std::size_t i = 0; i < count; ++i)
    if ((at -= weight[i]) < 0) return order[i];
  return order[count - 1];
}

Generator::Generator(models::Gpt2& model, int threads)
    : model_(model),
      cache_(model.make_cache(1, model.config().context, cache_type(model))),
      programs_(threads),
      stretch_(std::min(kStretch, cache_.longest)) {
  model_.eval();
  programs_.add("prefill", {{"prompt", {DType::I32, {1, stretch_}}}},
                [&](const std::vector<Tensor>& in) {
                  ModuleScope scope("", model_.policy());
                  model_.prefill(in[0], cache_);
                  return std::vector<std::pair<std::string, Tensor>>{};
                });
  programs_.add("decode", {{"token", {DType::I32, {1, 1}}}}, [&](const std::vector<Tensor>& in) {
    ModuleScope scope("", model_.policy());
    return std::vector<std::pair<std::string, Tensor>>{
        {"logits", result_as(model_.decode(in[0], cache_), DType::F32)}};
  });
  programs_.finish();
  decode_ = programs_.find("decode");
  prefill_ = programs_.find("prefill");
  token_ = programs_.input<std::int32_t>("decode", "token");
  prompt_ = programs_.input<std::int32_t>("prefill", "prompt");
  logits_ = programs_.output<float>("decode", "logits");
}

void Generator::check(std::span<const std::int32_t> tokens) const {
  for (const std::int32_t token : tokens)
    if (token < 0 || token >= model_.config().vocab)
      throw DataError("E0522", "token " + std::to_string(token) + " is outside the vocabulary")
          .need("0 to " + std::to_string(model_.config().vocab - 1));
}

void Generator::run(int program, std::int32_t* input, std::span<const std::int32_t> tokens) {
  std::copy(tokens.begin(), tokens.end(), input);
  programs_.run(program, {});
}

void Generator::start(std::span<const std::int32_t> tokens) {
  if (tokens.empty())
    throw UserError("E0812", "there is no token to begin with")
        .need("a prompt of one token or more");
  check(tokens);
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(cache_.longest - 1, 1));
  if (tokens.size() > most) tokens = tokens.subspan(tokens.size() - most);
  sequence_.assign(tokens.begin(), tokens.end());
  cache_.clear();
  // Only the last token's logits count, so at least one is left for decode.
  std::span<const std::int32_t> rest(sequence_);
  const auto stretch = static_cast<std::size_t>(stretch_);
  for (; rest.size() > stretch; rest = rest.subspan(stretch))
    run(prefill_, prompt_, rest.first(stretch));
  for (; !rest.empty(); rest = rest.subspan(1)) run(decode_, token_, rest.first(1));
}

void Generator::feed(std::int32_t token) {
  check({&token, 1});
  sequence_.push_back(token);
  if (static_cast<std::int64_t>(sequence_.size()) <= cache_.longest) {
    run(decode_, token_, {&token, 1});
    return;
  }
  const std::vector<std::int32_t> recent(sequence_.begin() + sequence_.size() / 2, sequence_.end());
  start(recent);
}

std::span<const float> Generator::logits(std::int64_t ids) const {
  return {logits_, static_cast<std::size_t>(std::min(ids, model_.config().vocab))};
}

}  // namespace aloft
