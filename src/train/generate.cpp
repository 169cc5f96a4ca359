#include "train/generate.h"

#include <algorithm>
#include <cmath>
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

}  // namespace

std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& o,
                          std::int64_t index) {
  ensure(!logits.empty(), "there are logits to sample from");
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  if (o.temperature <= 0) return *std::min_element(order.begin(), order.end(), likelier);
  std::sort(order.begin(), order.end(), likelier);
  if (o.top_k > 0 && o.top_k < static_cast<std::int64_t>(order.size())) order.resize(o.top_k);
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
      programs_(threads) {
  model_.eval();
  programs_.add("decode", {{"token", {DType::I32, {1, 1}}}}, [&](const std::vector<Tensor>& in) {
    ModuleScope scope("", model_.policy());
    return std::vector<std::pair<std::string, Tensor>>{
        {"logits", result_as(model_.decode(in[0], cache_), DType::F32)}};
  });
  programs_.finish();
  decode_ = programs_.find("decode");
  input_ = programs_.input<std::int32_t>("decode", "token");
  logits_ = programs_.output<float>("decode", "logits");
}

void Generator::run(std::int32_t token) {
  if (token < 0 || token >= model_.config().vocab)
    throw DataError("E0522", "token " + std::to_string(token) + " is outside the vocabulary")
        .need("0 to " + std::to_string(model_.config().vocab - 1));
  *input_ = token;
  programs_.run(decode_, {});
}

void Generator::start(std::span<const std::int32_t> tokens) {
  if (tokens.empty())
    throw UserError("E0812", "there is no token to begin with")
        .need("a prompt of one token or more");
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(cache_.longest - 1, 1));
  if (tokens.size() > most) tokens = tokens.subspan(tokens.size() - most);
  sequence_.assign(tokens.begin(), tokens.end());
  cache_.clear();
  for (std::int32_t t : sequence_) run(t);
}

void Generator::feed(std::int32_t token) {
  sequence_.push_back(token);
  if (static_cast<std::int64_t>(sequence_.size()) <= cache_.longest) {
    run(token);
    return;
  }
  const std::vector<std::int32_t> recent(sequence_.begin() + sequence_.size() / 2, sequence_.end());
  start(recent);
}

std::span<const float> Generator::logits() const {
  return {logits_, static_cast<std::size_t>(model_.config().vocab)};
}

}  // namespace aloft
