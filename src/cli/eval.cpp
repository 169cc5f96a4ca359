// aloft eval MODEL --data FILE: what a saved model loses on a text, or on JSON lines; of a
// classifier, how often it is right.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "base/json.h"
#include "base/log.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/eval_options.h"
#include "cli/option_checks.h"
#include "cli/verb.h"
#include "cli/work_progress.h"
#include "data/corpus_words.h"
#include "data/jsonl_set.h"
#include "frontend/amp.h"
#include "infer/chat_prompt.h"
#include "infer/text_loss.h"
#include "recipe/what_lies_there.h"
#include "runtime/threads.h"
#include "tasks/loss_text.h"

namespace aloft::cli {
namespace {

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

// What is said of any data, and `more` of this kind. `bytes`: of its text, where it is known.
void print(const EvalOptions& o, const TextLoss& loss, std::optional<std::uint64_t> bytes,
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

// What `loss_of` says, which is watched.
template <class LossOf>
TextLoss watched(const EvalOptions& o, const LossOf& loss_of) {
  WorkProgress progress("window");
  TextLossOptions windows;
  windows.length = o.length;
  windows.stride = o.stride.value_or(0);
  windows.batch = o.windows.value_or(1);
  windows.threads = o.thread_count();
  windows.on_batch = [&](const TextLoss& so_far, std::int64_t all) {
    progress.show(so_far.windows, all, "loss " + loss_text(so_far.mean()));
  };
  TextLoss loss;
  progress.watch([&] { loss = loss_of(windows); });
  return loss;
}

// What a folder or glob holds that is no text is rarely meant to be.
void say_odd_files(const Corpus& corpus) {
  constexpr int kShown = 10;
  int shown = 0;
  for (const SkippedFile& f : corpus.skipped)
    if (++shown <= kShown) log_warning("skipped {}: {}", f.path.string(), f.why);
  if (shown > kShown) log_warning("skipped {} more files", shown - kShown);
  for (const DoubtfulFile& f : corpus.doubtful)
    log_warning("{} may be no text: {}. Its bytes are predicted as they are", f.path.string(),
                f.why);
}

void eval_text(SavedModel& saved, const EvalOptions& o) {
  const Corpus corpus = open_corpus(
      o.data, {},
      {"--data", "to predict",
       "name text files, or folders of them; JSON lines by their files: --data 'FOLDER/*.jsonl'"});
  say_odd_files(corpus);
  load_weights(saved, o);
  const std::vector<std::int32_t> tokens = tokens_of(corpus, *saved.tokenizer);
  const TextLoss loss = watched(o, [&](const TextLossOptions& windows) {
    return loss_of_text(*saved.model, tokens, windows);
  });
  print(o, loss, corpus.bytes(), {{"tokens", tokens.size()}, {"bytes", corpus.bytes()}},
        fmt::format("{} tokens of {}", grouped(static_cast<std::int64_t>(tokens.size())),
                    human_bytes(corpus.bytes())));
}

void need_no_template(const EvalOptions& o, const std::string& seen) {
  if (!o.chat_template.empty())
    throw UserError("E0700", "--chat-template is of JSON lines with \"messages\"")
        .saw(seen + ": " + join(o.data, ", "))
        .need("lines with \"messages\"")
        .advice("leave --chat-template out");
}

// Each line by itself, and of it what a training would learn.
void eval_jsonl(SavedModel& saved, const EvalOptions& o) {
  if (!std::ranges::all_of(o.data, means_json_lines))
    throw UserError("E0700", "text and JSON lines are asked for together")
        .saw(join(o.data, ", "))
        .need("--data of one kind: files of text, or files of JSON lines");
  const std::vector<CorpusFile> files = list_jsonl(o.data);
  load_weights(saved, o);
  std::optional<LoadedChatTemplate> form;
  std::optional<JsonlEncoder> encoder;
  JsonlSetOptions whole;
  whole.length = std::numeric_limits<std::int32_t>::max();
  whole.on_line = [] { InterruptScope::leave_if_asked(); };
  whole.nothing = "there is no token to predict";
  const JsonlSet set = read_jsonl(
      files,
      [&](JsonlKind kind) -> JsonlEncoder& {
        if (kind == JsonlKind::Messages) {
          form = chat_template_of(saved, o.chat_template, "--chat-template FILE");
        } else {
          need_no_template(o, "lines of " + std::string(keys_of(kind)));
        }
        return encoder.emplace(*saved.tokenizer, form ? &*form : nullptr);
      },
      whole);
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < set.sequences->size(); ++i) tokens += set.sequences->inputs(i) + 1;
  const TextLoss loss = watched(o, [&](const TextLossOptions& windows) {
    return loss_of_sequences(*saved.model, *set.sequences, windows);
  });
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

ExitCode eval(const EvalOptions& o) {
  const InterruptScope interrupts("nothing is left");
  if (o.thread_count() > 0) host_threads().set_count(o.thread_count());
  SavedModel saved =
      describe_saved_model(o.model.path, o.model.checkpoint, o.model.average, SavedKind::Any);
  if (saved.classifier && !saved.classifier->of_texts())
    throw UserError("E0718", "the model is not of the kind that is asked for")
        .at(o.model.path)
        .saw("a classifier of features")
        .need("a language model, or a classifier of texts");
  if (!saved.tokenizer) refuse_without_tokenizer(o.model.path);
  const bool has_jsonl = std::ranges::any_of(o.data, means_json_lines);
  if (saved.classifier) {
    need_no_template(o, "a classifier");
    eval_labelled(saved, o);
  } else if (has_jsonl) {
    eval_jsonl(saved, o);
  } else {
    need_no_template(o, "text");
    eval_text(saved, o);
  }
  return ExitCode::Ok;
}

}  // namespace

void load_weights(SavedModel& saved, const EvalOptions& o) {
  amp::prepare(saved.module(), precision_of(o.precision));
  give_room(saved);
  saved.load();
}

Action eval_verb(CLI::App& app) {
  auto o = std::make_shared<EvalOptions>();
  add_saved_model(app, o->model);
  app.add_option("--data", o->data,
                 "text: files, folders, globs; or files of JSON lines\n(a classifier: \"text\" "
                 "and \"label\")")
      ->required();
  add_chat_template(app, o->chat_template);
  app.add_option("--length", o->length,
                 "tokens of a window, or of a classifier's text; 0: the model's context")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--stride", o->stride,
                 "tokens from one window to the next; 0: half of the length (default: 0)")
      ->check(at_least(0));
  app.add_option("--windows", o->windows,
                 "windows, or texts, at a time (default: 1 window, 16 texts)")
      ->check(CLI::Range(std::int64_t{1}, TextLossOptions::kMostWindows));
  add_precision(app, o->precision);
  add_threads(app, o->threads);
  add_json(app, o->as_json);
  add_device(app);
  return [o] { return eval(*o); };
}

}  // namespace aloft::cli
