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
  if (o.batch < 1) refuse("batch", o.batch, "1 or more");
  return o;
}

void check(std::span<const std::int32_t> tokens, std::int64_t vocab) {
  if (tokens.size() < 2)
    throw UserError("E0812", "there is nothing to predict")
        .saw(fmt::format("a text of {} tokens", tokens.size()))
        .need("two or more");
  for (const std::int32_t token : tokens)
    if (token < 0 || token >= vocab)
      throw DataError("E0522", fmt::format("token {} is outside the vocabulary", token))
          .need(fmt::format("0 to {}", vocab - 1));
}

// Fills one row with the window that begins at `begin`; what an earlier one has predicted, and what
// is behind the text's end, is ignored. Returns how many tokens it predicts.
std::int64_t fill(std::span<const std::int32_t> tokens, std::int64_t begin, std::int64_t predicted,
                  std::span<std::int32_t> in, std::span<std::int32_t> targets) {
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < std::ssize(in); ++i) {
    const std::int64_t at = begin + i, next = at + 1;
    const bool is_there = next < std::ssize(tokens);
    const bool counts = is_there && next > predicted;
    in[i] = is_there ? tokens[at] : 0;
    targets[i] = counts ? tokens[next] : kIgnored;
    counted += counts;
  }
  return counted;
}

}  // namespace

TextLoss loss_of_text(models::CausalLm& model, std::span<const std::int32_t> tokens,
                      const TextLossOptions& options) {
  TextLossOptions o = settled(options, model);
  check(tokens, model.vocab());
  o.length = std::min(o.length, std::ssize(tokens) - 1);
  o.stride = std::min(o.stride, o.length);
  model.eval();
  Programs programs(o.threads);
  const TensorType type{DType::I32, {o.batch, o.length}};
  programs.add("loss", {{"tokens", type}, {"targets", type}}, [&](const std::vector<Tensor>& in) {
    ModuleScope scope("", model.policy());
    return std::vector<std::pair<std::string, Tensor>>{
        {"loss", cast(model.loss(in[0], in[1]), DType::F32)}};
  });
  need_memory_for(programs.plan(), "a smaller batch or length, or a lower precision");
  programs.finish();
  const auto in = programs.input<std::int32_t>("loss", "tokens");
  const auto targets = programs.input<std::int32_t>("loss", "targets");
  const auto loss = programs.output<float>("loss", "loss");
  const int program = programs.find("loss");
  TextLoss result;
  const auto cells = static_cast<std::size_t>(o.batch * o.length);
  std::vector<std::int32_t> x(cells), y(cells);
  const std::int64_t last = std::ssize(tokens) - 1;  // the last token that is predicted
  std::int64_t predicted = 0;                        // tokens up to this one are
  for (std::int64_t begin = 0; predicted < last;) {
    InterruptScope::leave_if_asked();
    std::int64_t counted = 0;
    for (std::int64_t row = 0; row < o.batch; ++row, begin += o.stride) {
      const auto part = static_cast<std::size_t>(row * o.length);
      const auto width = static_cast<std::size_t>(o.length);
      counted += fill(tokens, begin, predicted, std::span(x).subspan(part, width),
                      std::span(y).subspan(part, width));
      result.windows += predicted < last;
      predicted = std::min(last, std::max(predicted, begin + o.length));
    }
    in.set(x);
    targets.set(y);
    programs.run(program, {});
    result.nats += static_cast<double>(loss.read()[0]) * static_cast<double>(counted);
    result.predicted += counted;
  }
  return result;
}

}  // namespace aloft
