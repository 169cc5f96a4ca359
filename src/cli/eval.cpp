// aloft eval MODEL --data FILE: what a saved model loses on a text, or on JSON lines.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/option_checks.h"
#include "cli/shared_options.h"
#include "cli/verb.h"
#include "data/corpus.h"
#include "data/jsonl_set.h"
#include "data/jsonl_tokens.h"
#include "infer/chat_prompt.h"
#include "infer/saved_model.h"
#include "infer/text_loss.h"
#include "recipe/what_lies_there.h"
#include "runtime/threads.h"
#include "tasks/loss_text.h"

namespace aloft::cli {
namespace {

struct Options {
  SavedModelWords model;
  std::vector<std::string> data;
  std::string precision, chat_template;
  TextLossOptions windows;
  std::optional<std::int64_t> threads;
  bool as_json = false;
};

// Documents as training sees them: one behind the other, the tokenizer's token between them. What
// the tokenizer puts before a text stands before all, as models have seen texts begin.
std::vector<std::int32_t> tokens_of(const Corpus& corpus, const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids = text_frame(tokenizer).before;
  for (std::size_t i = 0; i < corpus.files.size(); ++i) {
    if (const auto end = tokenizer.end_of_text(); end && i > 0) ids.push_back(*end);
    read_part(
        corpus, {i, 0, corpus.files[i].size},
        [&](std::string_view text) { return tokenizer.safe_cut(text); },
        [&](std::string_view text) {
          InterruptScope::leave_if_asked();
          tokenizer.encode_to(text, ids);
        });
  }
  return ids;
}

SavedModel opened(const Options& o) {
  SavedModel saved = open_saved_model(o.model.path, o.model.checkpoint, o.model.average,
                                      precision_of(o.precision));
  if (!saved.tokenizer) refuse_without_tokenizer(o.model.path);
  return saved;
}

// What is said of any data, and `more` of this kind. `bytes`: of its text, where it is known.
void print(const Options& o, const TextLoss& loss, std::optional<std::uint64_t> bytes,
           const nlohmann::json& more, const std::string& read) {
  const auto a_token = [&](std::uint64_t all) {
    return static_cast<double>(all) / static_cast<double>(loss.predicted);
  };
  const auto measures =
      measures_of_text(loss.mean(), bytes ? std::optional(a_token(*bytes)) : std::nullopt);
  if (o.as_json) {
    nlohmann::json j = {
        {"loss", loss.mean()}, {"predicted", loss.predicted}, {"windows", loss.windows}};
    j.update(more);
    for (const Measure& m : measures) j[m.name] = m.value;
    return print_result("{}\n", json_text(j));
  }
  std::string text = "loss " + loss_text(loss.mean());
  for (const Measure& m : measures) text += "  " + m.text;
  print_result("{}\n{} in {} windows\n", text, read, grouped(loss.windows));
}

void eval_text(const Options& o, const TextLossOptions& windows) {
  const Corpus corpus = open_corpus(o.data);
  const SavedModel saved = opened(o);
  const std::vector<std::int32_t> tokens = tokens_of(corpus, *saved.tokenizer);
  const TextLoss loss = loss_of_text(*saved.model, tokens, windows);
  print(o, loss, corpus.bytes(), {{"tokens", tokens.size()}, {"bytes", corpus.bytes()}},
        fmt::format("{} tokens of {}", grouped(static_cast<std::int64_t>(tokens.size())),
                    human_bytes(corpus.bytes())));
}

bool is_jsonl(std::string_view entry) { return entry.ends_with(".jsonl"); }

// Each line by itself, and of it what a training would learn.
void eval_jsonl(const Options& o, const TextLossOptions& windows) {
  if (!std::ranges::all_of(o.data, is_jsonl))
    throw UserError("E0700", "text and JSON lines are asked for together")
        .saw(join(o.data, ", "))
        .need("--data of one kind: files of text, or files that end with .jsonl");
  const std::vector<CorpusFile> files = list_jsonl(o.data);
  const SavedModel saved = opened(o);
  std::optional<LoadedChatTemplate> form;
  std::optional<JsonlEncoder> encoder;
  JsonlSetOptions whole;
  whole.length = std::numeric_limits<std::int32_t>::max();
  whole.on_line = [] { InterruptScope::leave_if_asked(); };
  const JsonlSet set = read_jsonl(
      files,
      [&](JsonlKind kind) -> JsonlEncoder& {
        if (kind == JsonlKind::Messages) form = chat_template_of(saved, o.chat_template);
        return encoder.emplace(*saved.tokenizer, form ? &*form : nullptr);
      },
      whole);
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < set.sequences->size(); ++i) tokens += set.sequences->inputs(i) + 1;
  const TextLoss loss = loss_of_sequences(*saved.model, *set.sequences, windows);
  // What a prompt or a template adds has bytes that nobody predicts.
  const bool is_text = set.kind == JsonlKind::Text;
  const auto lines = static_cast<std::int64_t>(set.sequences->size());
  nlohmann::json more = {{"tokens", tokens},
                         {"lines", lines},
                         {"left_out", set.left_out},
                         {"kind", keys_of(set.kind)}};
  if (is_text) more["bytes"] = set.text_bytes;
  print(o, loss, is_text ? std::optional(set.text_bytes) : std::nullopt, more,
        fmt::format("{} tokens that are learnt, of {} in {} lines{}", grouped(loss.predicted),
                    grouped(tokens), grouped(lines),
                    set.left_out > 0
                        ? fmt::format(" ({} left out: nothing of them is learnt)", set.left_out)
                        : ""));
}

ExitCode eval(const Options& o) {
  const InterruptScope interrupts("nothing is left");
  if (o.threads.value_or(0) > 0) host_threads().set_count(static_cast<int>(*o.threads));
  TextLossOptions windows = o.windows;
  windows.threads = static_cast<int>(o.threads.value_or(0));
  const bool has_jsonl = std::ranges::any_of(o.data, is_jsonl);
  if (!has_jsonl && !o.chat_template.empty())
    throw UserError("E0700", "--chat-template is of JSON lines with \"messages\"")
        .saw(join(o.data, ", "))
        .need("--data FILE.jsonl");
  (has_jsonl ? eval_jsonl : eval_text)(o, windows);
  return ExitCode::Ok;
}

}  // namespace

Action eval_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_saved_model(app, o->model);
  app.add_option("--data", o->data, "text: files, folders, globs; or JSON lines, *.jsonl")
      ->required();
  add_chat_template(app, o->chat_template);
  app.add_option("--length", o->windows.length, "tokens of a window; 0: the model's context")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--stride", o->windows.stride,
                 "tokens from one window to the next; 0: half of the length")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--windows", o->windows.batch, "so many at a time")
      ->check(CLI::Range(std::int64_t{1}, TextLossOptions::kMostWindows))
      ->capture_default_str();
  add_precision(app, o->precision);
  add_threads(app, o->threads);
  add_json(app, o->as_json);
  add_device(app);
  return [o] { return eval(*o); };
}

}  // namespace aloft::cli
