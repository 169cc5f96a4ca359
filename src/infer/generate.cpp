#include "infer/generate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "frontend/description.h"
#include "models/logits.h"
#include "ops/cast.h"
#include "precision/decide.h"
#include "recipe/memory_need.h"
#include "runtime/current_device.h"

namespace aloft {
namespace {

// The type that attention computes in under the model's policy: the widest, where layers have types
// of their own.
DType cache_type(const models::CausalLm& model) {
  if (!model.policy()) return DType::F32;
  const PrecisionRecipe& recipe = model.policy().recipe();
  if (recipe.level == Level::O0 || !recipe.fp32_layers.empty()) return DType::F32;
  const DType low = recipe.type_in(Phase::Forward);
  const bool has_other = !(low == DType::F16 ? recipe.bf16_layers : recipe.fp16_layers).empty();
  return has_other ? DType::F32 : low;
}

// Positions that a cache has, where so many tokens will come: in steps, so that prompts of about
// one length are served by one program.
std::int64_t positions_for(std::int64_t tokens, std::int64_t context) {
  constexpr std::int64_t kStep = 256;
  if (tokens >= context - kStep) return context;
  return std::min(context, (std::max<std::int64_t>(tokens, 1) + kStep) / kStep * kStep);
}

// The cache is made before there is a plan of it.
models::DecodeCache make_cache(const models::CausalLm& model, std::int64_t rows,
                               std::string_view less_memory, std::int64_t tokens) {
  const std::int64_t longest = positions_for(tokens, model.context());
  const auto make = [&] { return model.make_cache(rows, longest, cache_type(model)); };
  if (!less_memory.empty()) {
    const OnlyDescribed scope;
    double bytes = 0;
    for (const nn::KeyValueCache& layer : make().layers)
      for (const VariablePtr& v : {layer.keys, layer.values})
        bytes += static_cast<double>(v->type.max_bytes());
    current_device().need_memory(
        bytes, fmt::format("the keys and values of {} texts of {} tokens", rows, longest),
        less_memory);
  }
  return make();
}

UserError out_of_range(const std::string& saw, const std::string& need) {
  return UserError("E0700", "an option of drawing text is out of range").saw(saw).need(need);
}

void need_ids(std::int64_t ids) {
  if (ids < 1) throw out_of_range("ids = " + std::to_string(ids), "a whole number, 1 or more");
}

// Tokens of a prompt that are fed at once: enough to read the weights seldom, few enough for the
// activations to stay small.
constexpr std::int64_t kStretch = 64;

}  // namespace

Generator::Generator(models::CausalLm& model, int threads, std::int64_t rows,
                     std::string_view less_memory, std::int64_t tokens)
    : model_(model),
      cache_(make_cache(model, rows, less_memory, tokens)),
      programs_(threads),
      stretch_(std::min(kStretch, cache_.longest)),
      sequences_(static_cast<std::size_t>(rows)) {
  model_.eval();
  programs_.add("prefill", {{"prompt", {DType::I32, {rows, stretch_}}}},
                [&](const std::vector<Tensor>& in) {
                  ModuleScope scope("", model_.policy());
                  model_.prefill(in[0], cache_);
                  return std::vector<std::pair<std::string, Tensor>>{};
                });
  programs_.add("decode", {{"token", {DType::I32, {rows, 1}}}}, [&](const std::vector<Tensor>& in) {
    ModuleScope scope("", model_.policy());
    return std::vector<std::pair<std::string, Tensor>>{
        {"logits", cast(models::decoded_logits(model_, in[0], cache_), DType::F32)}};
  });
  if (!less_memory.empty()) need_memory_for(programs_.plan(), less_memory);
  programs_.finish();
  decode_ = programs_.find("decode");
  prefill_ = programs_.find("prefill");
  token_ = programs_.input<std::int32_t>("decode", "token");
  prompt_ = programs_.input<std::int32_t>("prefill", "prompt");
  logits_ = programs_.output<float>("decode", "logits");
}

void Generator::check(std::span<const std::int32_t> tokens) const {
  for (const std::int32_t token : tokens)
    if (token < 0 || token >= model_.vocab())
      throw DataError("E0522", "token " + std::to_string(token) + " is outside the vocabulary")
          .need("0 to " + std::to_string(model_.vocab() - 1));
}

void Generator::need_start() const {
  if (sequences_[0].empty())
    throw UserError("E0812", "the generator has no token to go on from")
        .saw("a call before start()")
        .need("start() with a prompt of one token or more");
}

// Tokens [from, from + count) of every row, and behind them what fills up the program's input.
void Generator::run(int program, const InputPort<std::int32_t>& input, std::size_t from,
                    std::size_t count, std::size_t width) {
  {
    const HostWrite<std::int32_t> fed = input.write(width * sequences_.size());
    auto at = fed.begin();
    for (const auto& sequence : sequences_) {
      at = std::copy_n(sequence.begin() + static_cast<std::ptrdiff_t>(from), count, at);
      at = std::fill_n(at, width - count, 0);
    }
  }
  programs_.run(program, {});
  tokens_fed_ += static_cast<std::int64_t>(count);
}

void Generator::feed_all() {
  cache_.clear();
  // Only the last token's logits count, so at least one is left for decode.
  const auto stretch = static_cast<std::size_t>(stretch_);
  const std::size_t last = sequences_[0].size() - 1;
  std::size_t at = 0;
  for (; last - at >= stretch; at += stretch) run(prefill_, prompt_, at, stretch, stretch);
  // A part of a stretch goes as a whole one where there is room, and what filled it up is taken
  // back: a token at a time costs as much for a few of them.
  constexpr std::size_t kFew = 4;
  if (last - at > kFew && at + stretch <= static_cast<std::size_t>(cache_.longest)) {
    run(prefill_, prompt_, at, last - at, stretch);
    cache_.rewind(static_cast<std::int64_t>(at = last));
  }
  for (; at <= last; ++at) run(decode_, token_, at, 1, 1);
}

void Generator::start(std::span<const std::int32_t> tokens) {
  if (tokens.empty())
    throw UserError("E0812", "there is no token to begin with")
        .need("a prompt of one token or more");
  check(tokens);
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(cache_.longest - 1, 1));
  if (tokens.size() > most) tokens = tokens.subspan(tokens.size() - most);
  for (auto& sequence : sequences_) sequence.assign(tokens.begin(), tokens.end());
  feed_all();
}

void Generator::feed(std::span<const std::int32_t> tokens) {
  need_start();
  if (tokens.size() != sequences_.size())
    throw UserError("E0812", "a generator is fed a token a row")
        .saw(std::to_string(tokens.size()) + " tokens")
        .need(std::to_string(sequences_.size()) + ", one for each row");
  check(tokens);
  for (std::size_t row = 0; row < tokens.size(); ++row) sequences_[row].push_back(tokens[row]);
  const auto length = static_cast<std::int64_t>(sequences_[0].size());
  if (length <= cache_.longest) return run(decode_, token_, sequences_[0].size() - 1, 1, 1);
  // Whole stretches and one token more: the fewest runs for about half of the context.
  const std::int64_t half = cache_.longest / 2;
  const std::int64_t kept =
      std::max<std::int64_t>(half >= stretch_ ? half / stretch_ * stretch_ + 1 : half, 1);
  for (auto& sequence : sequences_) sequence.erase(sequence.begin(), sequence.end() - kept);
  ++times_full_;
  feed_all();
}

HostRead<float> Generator::logits(std::int64_t ids, std::int64_t row) const {
  need_start();
  need_ids(ids);
  if (row < 0 || row >= rows())
    throw UserError("E0812", "the generator has no such row")
        .saw(std::to_string(row))
        .need("0 to " + std::to_string(rows() - 1));
  const std::int64_t vocab = model_.vocab();
  return logits_.read(static_cast<std::size_t>(row * vocab),
                      static_cast<std::size_t>(std::min(ids, vocab)));
}

std::vector<DrawnText> draw_texts(
    Generator& generator, std::span<const std::int32_t> prompt, const DrawOptions& o,
    const std::function<void(std::int64_t row, std::int32_t token)>& drawn) {
  check(o.sampling);
  need_ids(o.ids);
  if (o.tokens < 0)
    throw out_of_range("tokens = " + std::to_string(o.tokens), "a whole number, 0 or more");
  const std::int64_t rows = generator.rows();
  std::vector<DrawnText> texts(static_cast<std::size_t>(rows));
  std::vector<std::int32_t> next(texts.size());
  std::vector<std::vector<std::int32_t>> so_far(texts.size(), {prompt.begin(), prompt.end()});
  generator.start(prompt);
  std::int64_t open = rows;
  for (std::int64_t i = 0; i < o.tokens; ++i) {
    if (i > 0) generator.feed(next);
    for (std::int64_t row = 0; row < rows; ++row) {
      DrawnText& text = texts[static_cast<std::size_t>(row)];
      if (text.ended) continue;  // it is fed its last token again, and nobody looks
      SamplingOptions sampling = o.sampling;
      sampling.seed += static_cast<std::uint64_t>(row);
      std::vector<std::int32_t>& whole = so_far[static_cast<std::size_t>(row)];
      const std::int32_t token =
          sample_token(generator.logits(o.ids, row), sampling, i, {whole, prompt.size()});
      next[static_cast<std::size_t>(row)] = token;
      text.ended = std::ranges::find(o.ends, token) != o.ends.end();
      if (!text.ended) {
        whole.push_back(token);
        text.tokens.push_back(token);
        if (drawn) drawn(row, token);
        text.ended = o.stops && o.stops(row, token);
      }
      open -= text.ended;
    }
    if (open == 0) break;
  }
  return texts;
}

}  // namespace aloft
