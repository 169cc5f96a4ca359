#include "cli/token_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "files/safetensors.h"

namespace aloft::cli {

namespace {

[[noreturn]] void refuse(
    const std::string& file, const std::string& saw,
    const char* need = "tokens i32 or i64 [B, T], and if targets are given, the same shape") {
  throw DataError("E0719", "the file of tokens cannot be scored").at(file).saw(saw).need(need);
}

void refuse_file_of_torch(const std::string& path) {
  const std::string ending = Path(path).extension().string();
  if (ending != ".pt" && ending != ".pth" && ending != ".bin" && ending != ".ckpt") return;
  throw DataError("E0719", "the file of tokens cannot be scored")
      .at(path)
      .saw("a file of torch.save, by its name")
      .need("a safetensors file")
      .advice(
          "in Python, of ids, whole numbers [B, T]: import safetensors.torch; "
          "safetensors.torch.save_file({\"tokens\": ids}, \"tokens.safetensors\")");
}

// "no tensor 'tokens'; there are a, b and 3 more"
std::string no_tokens(const Safetensors& file, const char* wanted = "'tokens'") {
  constexpr std::size_t kShown = 6;
  const std::vector<TensorView>& all = file.tensors();
  if (all.empty()) return fmt::format("no tensor {}, nor another one", wanted);
  std::string text = fmt::format("no tensor {}; there {} ", wanted, all.size() == 1 ? "is" : "are");
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
    if (v == -100 && least >= 0 && (t.name == "tokens" || t.name == "input_ids"))
      refuse(file.name(), fmt::format("{} holds -100 at {}", t.name, i));
    ids[i] = static_cast<std::int32_t>(v);
  }
  return ids;
}

// The tensors of a file, or where they are [batches, B, T] those of batch number `at`.
class Asked {
 public:
  Asked(const Safetensors& file, std::optional<std::int64_t> at) : name_(file.name()) {
    for (const TensorView& t : file.tensors()) tensors_.push_back(at ? one_of_batches(t, *at) : t);
  }
  const std::string& name() const { return name_; }
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const {
    const auto it = std::ranges::find(tensors_, name, &TensorView::name);
    return it == tensors_.end() ? nullptr : &*it;
  }

 private:
  TensorView one_of_batches(TensorView t, std::int64_t at) const {
    const Shape shape = t.type.shape;
    const std::int64_t all = shape.rank() == 3 ? shape[0].max() : 1;
    if (at >= all)
      refuse(name_, fmt::format("{} {}: no batch {}, counted from 0", t.name, t.type.str(), at),
             "a batch that the file has");
    if (shape.rank() != 3) return t;
    t.type.shape = Shape{shape[1], shape[2]};
    const std::size_t size = t.bytes.size() / static_cast<std::size_t>(all);
    t.bytes = t.bytes.subspan(static_cast<std::size_t>(at) * size, size);
    return t;
  }

  std::string name_;
  std::vector<TensorView> tensors_;
};

bool is_ids(const TensorView& t) {
  return (t.type.dtype == DType::I32 || t.type.dtype == DType::I64) && t.type.shape.rank() == 2;
}

// Of two tensors of one meaning the one that is there; null: none.
const TensorView* one_of(const Asked& file, const char* ours, const char* of_transformers) {
  const TensorView *own = file.find(ours), *other = file.find(of_transformers);
  if (own && other)
    refuse(file.name(), fmt::format("both '{}' and '{}'", ours, of_transformers), "one of them");
  return own ? own : other;
}

// Nothing where it is no whole number.
std::optional<std::int64_t> number_at(const TensorView& t, std::size_t i) {
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, t.bytes.data() + i * sizeof value, sizeof value);
    return static_cast<std::int64_t>(value);
  };
  if (t.type.dtype == DType::I64) return read(std::int64_t{});
  if (t.type.dtype == DType::I32) return read(std::int32_t{});
  if (t.type.dtype == DType::Bool) return read(std::uint8_t{});
  return std::nullopt;
}

// What a model of transformers is given beside tokens.
bool is_of_transformers(std::string_view name) {
  constexpr std::string_view kNames[] = {"attention_mask", "position_ids",    "token_type_ids",
                                         "inputs_embeds",  "past_key_values", "cache_position"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

// Of the tokens of the batch, by its name or its shape. What else lies in the file, such as the
// logits of another program, is no part of the question.
bool is_of_batch(const TensorView& t, const TensorView& tokens) {
  return t.type.shape == tokens.type.shape || is_of_transformers(t.name);
}

// What transformers takes beside tokens changes nothing where it says what holds here anyway: every
// token is attended to, and positions are counted from 0 in each row.
void refuse_what_is_not_read(const Asked& file, const TensorView& tokens) {
  const auto length = static_cast<std::size_t>(tokens.type.shape[1].max());
  for (const TensorView& t : file.tensors()) {
    if (t.name == tokens.name || t.name == "targets" || t.name == "labels") continue;
    if (!is_of_batch(t, tokens)) continue;
    const bool is_mask = t.name == "attention_mask", is_place = t.name == "position_ids";
    if (!is_mask && !is_place)
      refuse(file.name(), fmt::format("'{}' {}, which nothing reads", t.name, t.type.str()),
             "of the batch tokens (or input_ids) and perhaps targets (or labels) alone");
    const auto count = static_cast<std::size_t>(t.type.shape.max_numel());
    const bool has_rows = t.type.shape.rank() == 2 && t.type.shape[1] == tokens.type.shape[1];
    for (std::size_t i = 0; i < std::max<std::size_t>(count, 1); ++i) {
      const auto usual = static_cast<std::int64_t>(is_mask ? 1 : i % length);
      const auto value = count > 0 ? number_at(t, i) : std::nullopt;
      if (has_rows && value == usual) continue;
      const std::string saw = value
                                  ? fmt::format("{} {}, {} at {}", t.name, t.type.str(), *value, i)
                                  : t.name + " " + t.type.str();
      refuse(file.name(), saw,
             is_mask ? "1 everywhere, or no attention_mask: every token is attended to; padding "
                       "behind a row's last token changes no other loss where its targets (or "
                       "labels) are -100"
                     : "0, 1, 2, ... in each row, or no position_ids");
    }
  }
}

// Of each position the next one; behind the last there is none.
std::vector<std::int32_t> next_of(const std::vector<std::int32_t>& ids, std::int64_t length) {
  std::vector<std::int32_t> next(ids.size(), -100);
  for (std::size_t i = 0; i + 1 < ids.size(); ++i)
    if ((static_cast<std::int64_t>(i) + 1) % length != 0) next[i] = ids[i + 1];
  return next;
}

}  // namespace

Question read_question(const std::string& path, const models::CausalLm& model, bool needs_loss,
                       std::optional<std::int64_t> at) {
  refuse_file_of_torch(path);
  const Safetensors file = Safetensors::open(path);
  const Asked asked(file, at);
  const TensorView* tokens = one_of(asked, "tokens", "input_ids");
  if (!tokens) refuse(path, no_tokens(file, "'tokens', nor 'input_ids'"));
  const std::string seen = tokens->name + " " + tokens->type.str();
  if (!is_ids(*tokens)) refuse(path, seen);
  Question q;
  q.batch = tokens->type.shape[0].max();
  q.length = tokens->type.shape[1].max();
  if (q.batch == 0 || q.length == 0) refuse(path, seen);
  if (q.length > model.context())
    refuse(path, fmt::format("{}: rows of {} tokens", seen, q.length),
           fmt::format("at most {} in a row, the model's context", model.context()).c_str());
  const TensorView* targets = one_of(asked, "targets", "labels");
  refuse_what_is_not_read(asked, *tokens);
  q.tokens = read_ids(file, *tokens, 0, model.vocab());
  if (targets) {
    if (!is_ids(*targets) || targets->type.shape != tokens->type.shape)
      refuse(path, targets->name + " " + targets->type.str() + " beside " + seen);
    q.targets = read_ids(file, *targets, 0, model.vocab());
    if (targets->name == "labels") q.targets = next_of(q.targets, q.length);
    if (std::ranges::all_of(q.targets, [](std::int32_t id) { return id == -100; }))
      refuse(path, targets->name + " that are all -100: there is nothing to predict",
             "a target that is a token, or none of targets and labels");
    return q;
  }
  q.has_loss = q.length > 1;
  if (needs_loss && !q.has_loss)
    refuse(path, seen + ": none has a next one to be learnt",
           "two tokens in each row at least, or targets");
  q.targets = next_of(q.tokens, q.length);
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
  for (const TensorView& t : file.tensors())
    if (is_of_transformers(t.name))
      refuse(path, fmt::format("'{}' {}, which nothing reads", t.name, t.type.str()),
             "lengths [B], how many tokens of each row are its text, for attention_mask; types for "
             "token_type_ids; no others");
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
