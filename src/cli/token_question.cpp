#include "cli/token_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "files/safetensors.h"

namespace aloft::cli {

namespace {

[[noreturn]] void refuse(
    const std::string& file, const std::string& saw,
    const char* need = "tokens i32 or i64 [B, T], and if targets are given, the same shape") {
  throw DataError("E0719", "the file of tokens cannot be scored").at(file).saw(saw).need(need);
}

// "no tensor 'tokens'; there are a, b and 3 more"
std::string no_tokens(const Safetensors& file) {
  constexpr std::size_t kShown = 6;
  const std::vector<TensorView>& all = file.tensors();
  if (all.empty()) return "no tensor 'tokens', nor another one";
  std::string text = fmt::format("no tensor 'tokens'; there {} ", all.size() == 1 ? "is" : "are");
  for (std::size_t i = 0; i < std::min(kShown, all.size()); ++i)
    text += fmt::format("{}'{}' {}", i == 0 ? "" : ", ", all[i].name, all[i].type.str());
  if (all.size() > kShown) text += fmt::format(" and {} more", all.size() - kShown);
  return text;
}

std::vector<std::int32_t> read_ids(const Safetensors& file, const TensorView& t, std::int64_t least,
                                   std::int64_t below) {
  const std::size_t size = size_of(t.type.dtype);
  std::vector<std::int32_t> ids(t.bytes.size() / size);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::int64_t v = 0;
    if (t.type.dtype == DType::I32) {
      std::int32_t narrow = 0;
      std::memcpy(&narrow, t.bytes.data() + i * size, size);
      v = narrow;
    } else {
      std::memcpy(&v, t.bytes.data() + i * size, size);
    }
    if ((v < least || v >= below) && v != -100)
      refuse(file.name(),
             fmt::format("{} holds {} at {}; the vocabulary has {}", t.name, v, i, below));
    if (v == -100 && least >= 0 && t.name == "tokens")
      refuse(file.name(), fmt::format("tokens holds -100 at {}", i));
    ids[i] = static_cast<std::int32_t>(v);
  }
  return ids;
}

// A tensor [batches, B, T]: batch number `at` of it. Any other as it is.
std::optional<TensorView> one_batch(const std::string& path, const TensorView* t,
                                    std::optional<std::int64_t> at) {
  if (!t) return std::nullopt;
  TensorView one = *t;
  if (!at) return one;
  const std::int64_t all = t->type.shape.rank() == 3 ? t->type.shape[0].max() : 1;
  if (*at >= all)
    refuse(path, fmt::format("{} {}: no batch {}, counted from 0", t->name, t->type.str(), *at),
           "a batch that the file has");
  if (t->type.shape.rank() != 3) return one;
  one.type.shape = Shape{t->type.shape[1], t->type.shape[2]};
  const std::size_t size = t->bytes.size() / static_cast<std::size_t>(all);
  one.bytes = t->bytes.subspan(static_cast<std::size_t>(*at) * size, size);
  return one;
}

}  // namespace

Question read_question(const std::string& path, const models::CausalLm& model, bool needs_loss,
                       std::optional<std::int64_t> at) {
  const Safetensors file = Safetensors::open(path);
  const auto find = [&](const char* name) { return one_batch(path, file.find(name), at); };
  const std::optional<TensorView> tokens = find("tokens");
  if (!tokens) refuse(path, no_tokens(file));
  const auto is_ids = [](const TensorView& t) {
    return (t.type.dtype == DType::I32 || t.type.dtype == DType::I64) && t.type.shape.rank() == 2;
  };
  if (!is_ids(*tokens)) refuse(path, "tokens " + tokens->type.str());
  Question q;
  q.batch = tokens->type.shape[0].max();
  q.length = tokens->type.shape[1].max();
  if (q.batch == 0 || q.length == 0 || q.length > model.context())
    refuse(path, fmt::format("tokens {}; the model's context is {}", tokens->type.str(),
                             model.context()));
  q.tokens = read_ids(file, *tokens, 0, model.vocab());
  if (const std::optional<TensorView> targets = find("targets")) {
    if (!is_ids(*targets) || targets->type.shape != tokens->type.shape)
      refuse(path, "targets " + targets->type.str() + " beside tokens " + tokens->type.str());
    q.targets = read_ids(file, *targets, 0, model.vocab());
    if (std::ranges::all_of(q.targets, [](std::int32_t id) { return id == -100; }))
      refuse(path, "targets that are all -100: there is nothing to predict",
             "a target that is a token, or no tensor 'targets'");
    return q;
  }
  q.has_loss = q.length > 1;
  if (needs_loss && !q.has_loss)
    refuse(path, "tokens " + tokens->type.str() + ": none has a next one to be learnt",
           "two tokens in each row at least, or targets");
  q.targets.assign(q.tokens.size(), -100);  // the last position has no next token
  for (std::int64_t b = 0; b < q.batch; ++b)
    for (std::int64_t t = 0; t + 1 < q.length; ++t)
      q.targets[b * q.length + t] = q.tokens[b * q.length + t + 1];
  return q;
}

namespace {

// The ids of a tensor of a text's question; none where there is no tensor of the name.
std::vector<std::int32_t> ids_in(const Safetensors& file, const char* name, const Shape& shape,
                                 std::int64_t least, std::int64_t below) {
  constexpr const char* kNeed =
      "tokens i32 or i64 [B, T]; types [B, T], lengths [B], labels [B] if given";
  const TensorView* t = file.find(name);
  if (!t) return {};
  if ((t->type.dtype != DType::I32 && t->type.dtype != DType::I64) || t->type.shape != shape)
    refuse(file.name(), std::string(name) + " " + t->type.str(), kNeed);
  std::vector<std::int32_t> ids = read_ids(file, *t, least, below);
  const bool may_be_ignored = std::string_view(name) == "labels";
  if (!may_be_ignored && std::ranges::find(ids, -100) != ids.end())
    refuse(file.name(), std::string(name) + " holds -100", kNeed);
  return ids;
}

}  // namespace

TextQuestion read_text_question(const std::string& path, const models::TextClassifier& model,
                                bool needs_labels) {
  const Safetensors file = Safetensors::open(path);
  const TensorView* tokens = file.find("tokens");
  if (!tokens) refuse(path, no_tokens(file));
  const Shape& shape = tokens->type.shape;
  if (shape.rank() != 2 || shape[0].max() == 0 || shape[1].max() == 0 ||
      shape[1].max() > model.context())
    refuse(path,
           fmt::format("tokens {}; texts have up to {}", tokens->type.str(), model.context()));
  TextQuestion q;
  q.batch = shape[0].max();
  q.length = shape[1].max();
  q.tokens = ids_in(file, "tokens", shape, 0, model.vocab());
  q.types = ids_in(file, "types", shape, 0, model.token_types());
  q.lengths = ids_in(file, "lengths", {q.batch}, 1, q.length + 1);
  q.labels = ids_in(file, "labels", {q.batch}, 0, model.classes());
  if (q.types.empty()) q.types.assign(q.tokens.size(), 0);
  if (q.lengths.empty())
    q.lengths.assign(static_cast<std::size_t>(q.batch), static_cast<std::int32_t>(q.length));
  if (q.labels.empty() && needs_labels)
    refuse(path, "no tensor 'labels'", "labels [B], of which gradients are");
  return q;
}

}  // namespace aloft::cli
