// aloft eval MODEL --data FILE: what a saved model loses on a text.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/option_checks.h"
#include "cli/shared_options.h"
#include "cli/verb.h"
#include "data/corpus.h"
#include "infer/saved_model.h"
#include "infer/text_loss.h"
#include "runtime/threads.h"
#include "tasks/loss_text.h"

namespace aloft::cli {
namespace {

struct Options {
  SavedModelWords model;
  std::vector<std::string> data;
  std::string precision;
  TextLossOptions windows;
  std::optional<std::int64_t> threads;
  bool as_json = false;
};

// Documents as training sees them: one behind the other, the tokenizer's token between them.
std::vector<std::int32_t> tokens_of(const Corpus& corpus, const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < corpus.files.size(); ++i) {
    if (const auto end = tokenizer.end_of_text(); end && i > 0) ids.push_back(*end);
    read_part(
        corpus, {i, 0, corpus.files[i].size},
        [&](std::string_view text) { return tokenizer.safe_cut(text); },
        [&](std::string_view text) { tokenizer.encode_to(text, ids); });
  }
  return ids;
}

ExitCode eval(const Options& o) {
  if (o.threads.value_or(0) > 0) host_threads().set_count(static_cast<int>(*o.threads));
  const Corpus corpus = open_corpus(o.data);
  SavedModel saved = open_saved_model(o.model.path, o.model.checkpoint, o.model.average,
                                      precision_of(o.precision));
  if (!saved.tokenizer)
    throw UserError("E0718", "there is no tokenizer beside the model")
        .at(o.model.path)
        .need(tokenizer_forms());
  const std::vector<std::int32_t> tokens = tokens_of(corpus, *saved.tokenizer);
  TextLossOptions windows = o.windows;
  windows.threads = static_cast<int>(o.threads.value_or(0));
  const TextLoss loss = loss_of_text(*saved.model, tokens, windows);
  const double bytes = static_cast<double>(corpus.bytes());
  const auto measures = measures_of_text(loss.mean(), bytes / static_cast<double>(loss.predicted));
  if (o.as_json) {
    nlohmann::json j = {{"loss", loss.mean()},
                        {"tokens", tokens.size()},
                        {"predicted", loss.predicted},
                        {"bytes", corpus.bytes()},
                        {"windows", loss.windows}};
    for (const Measure& m : measures) j[m.name] = m.value;
    print_result("{}\n", json_text(j));
    return ExitCode::Ok;
  }
  std::string text = "loss " + loss_text(loss.mean());
  for (const Measure& m : measures) text += "  " + m.text;
  print_result("{}\n{} tokens of {} in {} windows\n", text,
               grouped(static_cast<std::int64_t>(tokens.size())), human_bytes(corpus.bytes()),
               grouped(loss.windows));
  return ExitCode::Ok;
}

}  // namespace

Action eval_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_saved_model(app, o->model);
  app.add_option("--data", o->data, "text: files, folders, globs")->required();
  app.add_option("--length", o->windows.length, "tokens of a window; 0: the model's context")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--stride", o->windows.stride,
                 "tokens from one window to the next; 0: half of the length")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--windows", o->windows.batch, "so many at a time")
      ->check(at_least(1))
      ->capture_default_str();
  add_precision(app, o->precision);
  add_threads(app, o->threads);
  add_json(app, o->as_json);
  add_device(app);
  return [o] { return eval(*o); };
}

}  // namespace aloft::cli
