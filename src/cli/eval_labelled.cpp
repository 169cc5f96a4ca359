// `aloft eval` of a classifier of texts: loss and accuracy on lines with "text" and "label".
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/eval_options.h"
#include "cli/work_progress.h"
#include "data/jsonl_set.h"
#include "infer/text_classes.h"
#include "tasks/loss_text.h"

namespace aloft::cli {
namespace {

void append(LabelledTexts& all, const LabelledTexts& more) {
  for (std::size_t i = 1; i < more.starts.size(); ++i)
    all.starts.push_back(all.tokens.size() + more.starts[i]);
  all.tokens.insert(all.tokens.end(), more.tokens.begin(), more.tokens.end());
  all.types.insert(all.types.end(), more.types.begin(), more.types.end());
  all.labels.insert(all.labels.end(), more.labels.begin(), more.labels.end());
  all.cut += more.cut;
}

LabelledTexts texts_of(const EvalOptions& o, const SavedModel& saved, std::int64_t length) {
  LabelledTexts all;
  for (const CorpusFile& file : list_jsonl(o.data))
    append(all, read_labelled_texts(file.path, *saved.tokenizer, length));
  if (all.cut > 0)
    log_warning("{} of {} texts are longer than {} tokens and are cut", grouped(all.cut),
                grouped(static_cast<std::int64_t>(all.examples())), length);
  return all;
}

}  // namespace

void eval_labelled(SavedModel& saved, const EvalOptions& o) {
  const std::int64_t context = saved.classifier->of_texts()->context();
  if (o.stride)
    throw UserError("E0700", "--stride is of windows of a text")
        .saw("a classifier, which reads each text at once")
        .need("no --stride");
  if (o.length > context)
    throw UserError("E0700", "an option of a text's loss is out of range")
        .saw(fmt::format("length = {}", o.length))
        .need(fmt::format("1 to the model's context, {}", context));
  const LabelledTexts texts = texts_of(o, saved, o.length > 0 ? o.length : context);
  load_weights(saved, o);
  WorkProgress progress("text");
  const auto accuracy_text = [](const TextClasses& c) {
    return fmt::format("loss {}  accuracy {:.2f} %", loss_text(c.loss()), 100 * c.accuracy());
  };
  TextClassesOptions options;
  options.batch = o.windows.value_or(options.batch);
  options.threads = o.thread_count();
  options.on_batch = [&](const TextClasses& so_far) {
    progress.show(so_far.texts, static_cast<std::int64_t>(texts.examples()), accuracy_text(so_far));
  };
  TextClasses classes;
  progress.watch([&] { classes = classes_of_texts(*saved.classifier, texts, options); });
  if (o.as_json)
    print_result("{}\n", json_text(nlohmann::json{{"loss", classes.loss()},
                                                  {"accuracy", classes.accuracy()},
                                                  {"right", classes.right},
                                                  {"texts", classes.texts},
                                                  {"tokens", texts.tokens.size()},
                                                  {"cut", texts.cut}}));
  else
    print_result("{}\n{} of {} texts right\n", accuracy_text(classes), grouped(classes.right),
                 grouped(classes.texts));
}

}  // namespace aloft::cli
