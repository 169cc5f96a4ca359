#include "infer/text_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "frontend/programs.h"
#include "ops/cast.h"
#include "recipe/memory_need.h"

namespace aloft {
namespace {

constexpr std::int32_t kIgnored = -100;

TextLossOptions settled(TextLossOptions o, const models::CausalLm& model) {
  const auto refuse = [](const char* what, std::int64_t saw, const std::string& need) {
    throw UserError("E0700", "an option of a text's loss is out of range")
        .saw(fmt::format("{} = {}", what, saw))
        .need(need);
  };
  if (o.length == 0) o.length = model.context();
  if (o.length < 1 || o.length > model.context())
    refuse("length", o.length, fmt::format("1 to the model's context, {}", model.context()));
  if (o.stride == 0) o.stride = std::max<std::int64_t>(o.length / 2, 1);
  if (o.stride < 1 || o.stride > o.length)
    refuse("stride", o.stride, fmt::format("1 to the length, {}", o.length));
  if (o.batch < 1 || o.batch > TextLossOptions::kMostWindows)
    refuse("batch", o.batch, fmt::format("1 to {}", TextLossOptions::kMostWindows));
  return o;
}

void check(std::int32_t token, std::int64_t vocab) {
  if (token < 0 || token >= vocab)
    throw DataError("E0522", fmt::format("token {} is outside the vocabulary", token))
        .need(fmt::format("0 to {}", vocab - 1));
}

// A text of which some tokens count.
struct Counted {
  std::vector<std::int32_t> tokens;
  std::vector<bool> counts;  // one for each: whether its loss is asked for
};

// Calls `use` with where each window of a text begins, and up to which token earlier ones predict.
template <class Use>
void for_each_window(std::int64_t tokens, const TextLossOptions& o, const Use& use) {
  const std::int64_t last = tokens - 1;  // the last token that is predicted
  std::int64_t predicted = 0;            // tokens up to this one are
  for (std::int64_t begin = 0; predicted < last; begin += o.stride) {
    use(begin, predicted);
    predicted = std::min(last, begin + o.length);
  }
}

// Windows in which a token counts.
std::int64_t windows_of(const Sequences& sequences, const TextLossOptions& o) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const std::int64_t tokens = sequences.inputs(i) + 1;
    for_each_window(tokens, o, [&](std::int64_t begin, std::int64_t predicted) {
      const std::int64_t end = std::min(tokens, begin + o.length + 1);
      for (std::int64_t k = predicted + 1; k < end; ++k)
        if (sequences.token(i, static_cast<std::size_t>(k)) & kLearntToken) {
          ++count;
          return;
        }
    });
  }
  return count;
}

// Runs windows of texts, several at a time, and adds up what they lose.
class Windows {
 public:
  // `all`: windows of all texts.
  Windows(models::CausalLm& model, const TextLossOptions& o, std::int64_t all)
      : o_(o), all_(all), programs_(o.threads) {
    model.eval();
    const TensorType type{DType::I32, {o.batch, o.length}};
    programs_.add("loss", {{"tokens", type}, {"targets", type}},
                  [&](const std::vector<Tensor>& in) {
                    ModuleScope scope("", model.policy());
                    return std::vector<std::pair<std::string, Tensor>>{
                        {"loss", cast(model.loss(in[0], in[1]), DType::F32)}};
                  });
    need_memory_for(programs_.plan(), "a smaller batch or length, or a lower precision");
    programs_.finish();
    const auto cells = static_cast<std::size_t>(o.batch * o.length);
    x_.assign(cells, 0), y_.assign(cells, kIgnored);
  }

  void add(const Counted& text) {
    for_each_window(std::ssize(text.tokens), o_, [&](std::int64_t begin, std::int64_t predicted) {
      if (fill(text, begin, predicted) > 0 && ++row_ == o_.batch) run();
    });
  }

  TextLoss finish() {
    if (row_ > 0) run();
    return result_;
  }

 private:
  // Fills the next row with the window that begins at `begin`; what an earlier one has predicted,
  // what does not count and what is behind the text's end is ignored. How many tokens it predicts.
  std::int64_t fill(const Counted& text, std::int64_t begin, std::int64_t predicted) {
    std::int64_t counted = 0;
    for (std::int64_t i = 0; i < o_.length; ++i) {
      const std::int64_t at = begin + i, next = at + 1;
      const bool is_there = next < std::ssize(text.tokens);
      const bool counts =
          is_there && next > predicted && text.counts[static_cast<std::size_t>(next)];
      const auto cell = static_cast<std::size_t>(row_ * o_.length + i);
      x_[cell] = is_there ? text.tokens[static_cast<std::size_t>(at)] : 0;
      y_[cell] = counts ? text.tokens[static_cast<std::size_t>(next)] : kIgnored;
      counted += counts;
    }
    counted_ += counted;
    return counted;
  }

  // Rows that nobody has filled count for nothing.
  void run() {
    InterruptScope::leave_if_asked();
    std::fill(y_.begin() + row_ * o_.length, y_.end(), kIgnored);
    programs_.input<std::int32_t>("loss", "tokens").set(x_);
    programs_.input<std::int32_t>("loss", "targets").set(y_);
    programs_.run(programs_.find("loss"), {});
    const auto mean = programs_.output<float>("loss", "loss").read();
    result_.nats += static_cast<double>(mean[0]) * static_cast<double>(counted_);
    result_.predicted += counted_;
    result_.windows += row_;
    row_ = counted_ = 0;
    if (o_.on_batch) o_.on_batch(result_, all_);
  }

  TextLossOptions o_;
  std::int64_t all_;
  Programs programs_;
  std::vector<std::int32_t> x_, y_;
  std::int64_t row_ = 0, counted_ = 0;  // rows of x_ that are filled, tokens that they predict
  TextLoss result_;
};

// No window is longer than the longest text.
TextLossOptions fitted(TextLossOptions o, std::int64_t longest) {
  o.length = std::min(o.length, longest);
  o.stride = std::min(o.stride, o.length);
  return o;
}

}  // namespace

TextLoss loss_of_text(models::CausalLm& model, std::span<const std::int32_t> tokens,
                      const TextLossOptions& options) {
  TextLossOptions o = settled(options, model);
  if (tokens.size() < 2)
    throw UserError("E0812", "there is nothing to predict")
        .saw(fmt::format("a text of {} tokens", tokens.size()))
        .need("two or more");
  for (const std::int32_t token : tokens) check(token, model.vocab());
  o = fitted(o, std::ssize(tokens) - 1);
  std::int64_t all = 0;
  for_each_window(std::ssize(tokens), o, [&](std::int64_t, std::int64_t) { ++all; });
  Windows windows(model, o, all);
  windows.add({{tokens.begin(), tokens.end()}, std::vector<bool>(tokens.size(), true)});
  return windows.finish();
}

TextLoss loss_of_sequences(models::CausalLm& model, const Sequences& sequences,
                           const TextLossOptions& options) {
  TextLossOptions o = settled(options, model);
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i)
    longest = std::max(longest, sequences.inputs(i));
  if (longest == 0)
    throw UserError("E0812", "there is nothing to predict").saw("no text").need("one or more");
  o = fitted(o, longest);
  Windows windows(model, o, windows_of(sequences, o));
  Counted text;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    text.tokens.clear(), text.counts.clear();
    for (std::size_t k = 0; k <= static_cast<std::size_t>(sequences.inputs(i)); ++k) {
      const std::uint32_t token = sequences.token(i, k);
      text.tokens.push_back(static_cast<std::int32_t>(token & ~kLearntToken));
      text.counts.push_back((token & kLearntToken) != 0);
      check(text.tokens.back(), model.vocab());
    }
    windows.add(text);
  }
  return windows.finish();
}

}  // namespace aloft
