#include "infer/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
                               std::string_view less_memory, std::int64_t tokens,
                               RowLengths lengths) {
  const std::int64_t longest = positions_for(tokens, model.context());
  const auto make = [&] {
    models::DecodeCache cache = model.make_cache(rows, longest, cache_type(model));
    if (lengths != RowLengths::Equal) cache.allow_padding(rows);
    if (cache.first_length > 0) cache.allow_lengths(rows);
    return cache;
  };
  if (!less_memory.empty()) {
    const OnlyDescribed scope;
    double bytes = 0;
    for (const nn::KeyValueCache& layer : make().layers)
      for (const VariablePtr& v : {layer.keys, layer.values})
        bytes += static_cast<double>(v->type.max_bytes());
    if (lengths == RowLengths::Renewed) bytes += bytes / static_cast<double>(rows);
    current_device().need_memory(
        bytes, fmt::format("the keys and values of {} texts of {} tokens", rows, longest),
        less_memory);
  }
  return make();
}

void need_ids(std::int64_t ids) {
  if (ids >= 1) return;
  throw UserError("E0700", "an option of drawing text is out of range")
      .saw("ids = " + std::to_string(ids))
      .need("a whole number, 1 or more");
}

// Tokens of a prompt that are fed at once: enough to read the weights seldom, few enough for the
// activations to stay small.
constexpr std::int64_t kStretch = 64;

}  // namespace

Generator::Generator(models::CausalLm& model, int threads, std::int64_t rows,
                     std::string_view less_memory, std::int64_t tokens, RowLengths lengths)
    : model_(model),
      cache_(make_cache(model, rows, less_memory, tokens, lengths)),
      programs_(threads),
      stretch_(std::min(kStretch, cache_.longest)),
      rows_(static_cast<std::size_t>(rows)) {
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
  if (lengths == RowLengths::Renewed) add_alone();
  if (!less_memory.empty()) need_memory_for(programs_.plan(), less_memory);
  programs_.finish();
  decode_ = programs_.find("decode");
  prefill_ = programs_.find("prefill");
  token_ = programs_.input<std::int32_t>("decode", "token");
  prompt_ = programs_.input<std::int32_t>("prefill", "prompt");
  logits_ = programs_.output<float>("decode", "logits");
  if (!alone_) return;
  alone_->stretch = programs_.find("alone");
  alone_->token = programs_.find("alone-token");
  alone_->of_stretch = programs_.input<std::int32_t>("alone", "prompt");
  alone_->of_token = programs_.input<std::int32_t>("alone-token", "prompt");
}

void Generator::add_alone() {
  alone_ = std::make_unique<Alone>();
  alone_->cache = model_.make_cache(1, cache_.longest, cache_.layers[0].keys->type.dtype);
  if (cache_.lengths) alone_->cache.allow_lengths(1);
  for (const auto& [name, length] :
       {std::pair{"alone", stretch_}, std::pair{"alone-token", std::int64_t{1}}})
    programs_.add(name, {{"prompt", {DType::I32, {1, length}}}},
                  [&](const std::vector<Tensor>& in) {
                    ModuleScope scope("", model_.policy());
                    model_.prefill(in[0], alone_->cache);
                    return std::vector<std::pair<std::string, Tensor>>{};
                  });
}

void Generator::check(std::span<const std::int32_t> tokens) const {
  for (const std::int32_t token : tokens)
    if (token < 0 || token >= model_.vocab())
      throw DataError("E0522", "token " + std::to_string(token) + " is outside the vocabulary")
          .need("0 to " + std::to_string(model_.vocab() - 1));
}

void Generator::need_start() const {
  if (width_ == 0)
    throw UserError("E0812", "the generator has no token to go on from")
        .saw("a call before start()")
        .need("start() with a prompt of one token or more");
}

// Positions [from, from + count) of every row, and behind them what fills up the program's input.
void Generator::run(int program, const InputPort<std::int32_t>& input, std::size_t from,
                    std::size_t count, std::size_t width) {
  if (cache_.lengths)
    std::ranges::transform(
        rows_, cache_.lengths->buffer->write<std::int32_t>().begin(),
        [](const Row& row) { return static_cast<std::int32_t>(row.tokens.size()); });
  {
    const HostWrite<std::int32_t> fed = input.write(width * rows_.size());
    auto to = fed.begin();
    for (const Row& row : rows_)
      for (std::size_t i = 0; i < width; ++i, ++to) {
        const std::size_t at = from + i - row.start;  // padding wraps
        *to = i < count && at < row.tokens.size() ? row.tokens[at] : 0;
      }
  }
  programs_.run(program, {});
  tokens_fed_ += static_cast<std::int64_t>(count);
}

// Positions from `at` on, as many as are filled.
void Generator::feed_from(std::size_t at) {
  // Only the last token's logits count, so at least one is left for decode.
  const auto stretch = static_cast<std::size_t>(stretch_);
  const std::size_t last = width_ - 1;
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

// Every row ends at the last position that is filled.
void Generator::feed_all() {
  width_ = 1;
  for (Row& row : rows_) {
    if (row.is_left) row.tokens.clear();
    width_ = std::max(width_, row.tokens.size());
  }
  for (Row& row : rows_) row.start = width_ - std::max<std::size_t>(row.tokens.size(), 1);
  write_starts();
  cache_.clear();
  feed_from(0);
}

// Whether a text of so many tokens is read by the model's other angles.
bool Generator::is_beyond(std::size_t tokens) const {
  return cache_.first_length > 0 && std::cmp_greater(tokens, cache_.first_length);
}

// Keys and values of these tokens, in the cache of one row, whose text has one token more.
void Generator::read_alone(std::span<const std::int32_t> tokens) {
  const auto stretch = static_cast<std::size_t>(stretch_);
  const auto longest = static_cast<std::size_t>(cache_.longest);
  alone_->cache.clear();
  if (alone_->cache.lengths)
    alone_->cache.lengths->buffer->write_one(static_cast<std::int32_t>(tokens.size() + 1));
  for (std::size_t at = 0; at < tokens.size();) {
    // What fills up the last stretch stands behind what is taken of it.
    const bool is_whole = at + stretch <= longest;
    const InputPort<std::int32_t>& input = is_whole ? alone_->of_stretch : alone_->of_token;
    const std::size_t width = is_whole ? stretch : 1;
    {
      const HostWrite<std::int32_t> fed = input.write(width);
      for (std::size_t i = 0; i < width; ++i) fed[i] = at + i < tokens.size() ? tokens[at + i] : 0;
    }
    programs_.run(is_whole ? alone_->stretch : alone_->token, {});
    at += width;
  }
  tokens_fed_ += static_cast<std::int64_t>(tokens.size());
}

std::size_t Generator::bytes_of_position(const Variable& v, std::size_t rows) const {
  return v.type.max_bytes() / rows / static_cast<std::size_t>(cache_.longest);
}

// The first `count` positions of that cache become the row's last.
void Generator::take_alone(std::size_t row, std::size_t count) {
  std::vector<std::byte> moved;
  for (std::size_t i = 0; i < cache_.layers.size(); ++i) {
    const nn::KeyValueCache &from = alone_->cache.layers[i], &to = cache_.layers[i];
    for (const auto& [source, target] :
         {std::pair{from.keys, to.keys}, std::pair{from.values, to.values}}) {
      const std::size_t each = bytes_of_position(*target, rows_.size());
      moved.resize(count * each);
      source->buffer->read_into(moved, 0);
      const std::size_t stride = each * static_cast<std::size_t>(cache_.longest);
      target->buffer->write_from(moved, row * stride + (width_ - count) * each);
    }
  }
}

// Every row ends at position `width`: keys and values know their places in their text, not where
// they lie, so that they are copied and nothing is computed anew.
void Generator::move_to(std::size_t width) {
  if (width == width_) return;
  std::vector<std::byte> moved;
  for (const nn::KeyValueCache& layer : cache_.layers)
    for (const VariablePtr& v : {layer.keys, layer.values}) {
      const std::size_t each = bytes_of_position(*v, rows_.size());
      const std::size_t stride = each * static_cast<std::size_t>(cache_.longest);
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        const std::size_t count = rows_[r].is_left ? 0 : width_ - rows_[r].start;
        if (count == 0) continue;
        moved.resize(count * each);
        v->buffer->read_into(moved, r * stride + rows_[r].start * each);
        v->buffer->write_from(moved, r * stride + (width - count) * each);
      }
    }
  for (Row& row : rows_) row.start = width - (row.is_left ? 0 : width_ - row.start);
  width_ = width;
  write_starts();
  cache_.rewind(static_cast<std::int64_t>(width));
}

void Generator::begin(std::int64_t number, std::span<const std::int32_t> tokens) {
  need_start();
  need_row(number);
  if (!alone_)
    throw UserError("E0812", "a row cannot begin anew while the others go on")
        .need("RowLengths::Renewed when the generator is made");
  Row begun;
  set(begun, tokens);
  begun.first = begun.tokens.back();
  begun.tokens.pop_back();
  const std::size_t count = begun.tokens.size();
  Row& row = rows_[static_cast<std::size_t>(number)];
  row.is_left = true;  // what it held moves nowhere
  move_to(std::max(width_, count));
  read_alone(begun.tokens);
  row = std::move(begun);
  row.start = width_ - count;
  take_alone(static_cast<std::size_t>(number), count);
  write_starts();
}

void Generator::write_starts() {
  if (!cache_.starts) return;
  const auto starts = cache_.starts->buffer->write<std::int32_t>();
  std::ranges::transform(rows_, starts.begin(),
                         [](const Row& row) { return static_cast<std::int32_t>(row.start); });
}

void Generator::set(Row& row, std::span<const std::int32_t> tokens) const {
  if (tokens.empty())
    throw UserError("E0812", "there is no token to begin with")
        .need("a prompt of one token or more");
  check(tokens);
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(cache_.longest - 1, 1));
  if (tokens.size() > most) tokens = tokens.subspan(tokens.size() - most);
  row = {{tokens.begin(), tokens.end()}};
  row.is_beyond = is_beyond(tokens.size());
}

void Generator::start(std::span<const std::int32_t> tokens) {
  Row whole;
  set(whole, tokens);
  std::ranges::fill(rows_, whole);
  feed_all();
}

void Generator::start_each(std::span<const std::vector<std::int32_t>> rows) {
  need_a_row_each(rows.size(), "prompts");
  std::vector<Row> begun(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) set(begun[row], rows[row]);
  const auto is_other = [&](const Row& row) { return row.tokens.size() != begun[0].tokens.size(); };
  if (!cache_.starts && std::ranges::any_of(begun, is_other))
    throw UserError("E0812",
                    "prompts of several lengths in a generator whose rows are equally long")
        .need("RowLengths::Own when it is made");
  rows_ = std::move(begun);
  feed_all();
}

std::size_t Generator::start_again(std::span<const std::int32_t> tokens) {
  Row whole;
  set(whole, tokens);
  Row& row = rows_[0];
  const auto same = std::ranges::mismatch(row.tokens, whole.tokens).in1 - row.tokens.begin();
  const std::size_t kept = std::min(static_cast<std::size_t>(same), whole.tokens.size() - 1);
  if (rows_.size() > 1 || kept == 0 || row.is_beyond != whole.is_beyond) {
    start(tokens);
    return 0;
  }
  row = std::move(whole);
  width_ = row.tokens.size();
  cache_.rewind(static_cast<std::int64_t>(kept));
  feed_from(kept);
  return kept;
}

void Generator::feed(std::span<const std::int32_t> tokens) {
  need_start();
  need_a_row_each(tokens.size(), "tokens");
  check(tokens);
  // Whole stretches and one token more: the fewest runs for about half of the context.
  const auto longest = static_cast<std::size_t>(cache_.longest);
  const auto stretch = static_cast<std::size_t>(stretch_);
  const std::size_t half = longest / 2;
  const std::size_t kept =
      std::max<std::size_t>(half >= stretch ? half / stretch * stretch + 1 : half, 1);
  bool is_one_full = false, is_one_read_anew = false;
  std::size_t widest = 1;
  for (std::size_t r = 0; r < tokens.size(); ++r) {
    std::vector<std::int32_t>& row = rows_[r].tokens;
    if (rows_[r].is_left) continue;
    row.push_back(std::exchange(rows_[r].first, {}).value_or(tokens[r]));
    is_one_full = is_one_full || row.size() > longest;
    if (row.size() > longest) row.erase(row.begin(), row.end() - static_cast<std::ptrdiff_t>(kept));
    widest = std::max(widest, row.size());
    // Its keys were turned by angles that are no longer its own.
    const bool was_beyond = std::exchange(rows_[r].is_beyond, is_beyond(row.size()));
    is_one_read_anew = is_one_read_anew || was_beyond != rows_[r].is_beyond;
  }
  times_full_ += is_one_full;
  if (is_one_full || is_one_read_anew) return feed_all();
  if (width_ == longest) move_to(widest - 1);  // padding has taken the room
  run(decode_, token_, width_++, 1, 1);
}

void Generator::leave(std::int64_t row) {
  need_row(row);
  rows_[static_cast<std::size_t>(row)].is_left = true;
}

void Generator::reorder(std::span<const std::int64_t> from) {
  need_start();
  need_a_row_each(from.size(), "rows");
  for (const std::int64_t row : from) need_row(row);
  const std::vector<Row> before = rows_;
  for (std::size_t r = 0; r < rows_.size(); ++r) rows_[r] = before[from[r]];
  write_starts();
  for (const nn::KeyValueCache& layer : cache_.layers)
    for (const VariablePtr& v : {layer.keys, layer.values}) {
      const std::size_t stride = v->type.max_bytes() / rows_.size();
      const std::size_t used = stride / static_cast<std::size_t>(cache_.longest) * width_;
      std::vector<std::vector<std::byte>> moved(rows_.size());
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        if (static_cast<std::size_t>(from[r]) == r) continue;
        moved[r].resize(used);
        v->buffer->read_into(moved[r], static_cast<std::size_t>(from[r]) * stride);
      }
      for (std::size_t r = 0; r < rows_.size(); ++r)
        if (!moved[r].empty()) v->buffer->write_from(moved[r], r * stride);
    }
}

std::uint64_t Generator::cache_bytes() const {
  std::uint64_t bytes = 0;
  for (const nn::KeyValueCache& layer : cache_.layers)
    bytes += layer.keys->type.max_bytes() + layer.values->type.max_bytes();
  return alone_ ? bytes + bytes / rows_.size() : bytes;
}

void Generator::need_a_row_each(std::size_t count, const char* what) const {
  if (count != rows_.size())
    throw UserError("E0812",
                    std::string("a generator is given other ") + what + " than it has rows")
        .saw(std::to_string(count))
        .need(std::to_string(rows_.size()) + ", one for each row");
}

void Generator::need_row(std::int64_t row) const {
  if (row < 0 || row >= rows())
    throw UserError("E0812", "the generator has no such row")
        .saw(std::to_string(row))
        .need("0 to " + std::to_string(rows() - 1));
}

HostRead<float> Generator::logits(std::int64_t ids, std::int64_t row) const {
  need_start();
  need_ids(ids);
  need_row(row);
  const std::int64_t vocab = model_.vocab();
  return logits_.read(static_cast<std::size_t>(row * vocab),
                      static_cast<std::size_t>(std::min(ids, vocab)));
}

}  // namespace aloft
