#include "sources/jsonl.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/leftovers.h"
#include "base/log.h"
#include "base/text.h"
#include "data/build.h"
#include "data/sequence_examples.h"
#include "data/tokenizers/tokenizer_kind.h"
#include "recipe/open_data.h"
#include "recipe/run_length.h"
#include "sources/example_order.h"
#include "sources/run_tokenizer.h"
#include "sources/source_kind.h"

namespace aloft {
namespace {

using nlohmann::json;

bool has_micro_batches(const Recipe& recipe) { return recipe.train.accumulate > 1; }

// One that the recipe wants made is made of the lines' texts, as of any other text.
std::shared_ptr<const Tokenizer> tokenizer_for(const Recipe& recipe,
                                               const std::vector<CorpusFile>& files) {
  TokenizerSpec spec = recipe.data.tokenizer;
  if (!spec.path.empty()) {
    spec.path = (recipe.folder / spec.path).string();
    return make_tokenizer(spec, {}, {});
  }
  need_tokenizer_of_init(recipe);
  const Path cache = recipe.data.cache.empty() ? default_cache() : Path(recipe.data.cache);
  make_folder(cache);
  const ScratchFolder scratch(cache / "jsonl-text");
  const Path path = scratch.path() / "text.txt";
  write_texts_of_jsonl(files, path);
  Corpus corpus;
  corpus.files.push_back({path, "text.txt", size_of_file(path), 0});
  return make_tokenizer(spec, corpus, split_corpus(corpus, 0, 0));
}

// Beside the tokenizer that the recipe names.
LoadedChatTemplate template_for(const Recipe& recipe) {
  if (!recipe.data.tokenizer.path.empty()) {
    const Path path = recipe.folder / recipe.data.tokenizer.path;
    return load_chat_template(is_folder(path) ? path : path.parent_path());
  }
  throw DataError("E0540", "messages need a chat template, and the recipe names none")
      .need("data.tokenizer.path or model.init, a model's folder with one")
      .advice("lines of \"prompt\" and \"completion\", which need none");
}

void say_counts(const JsonlSet& set, std::int64_t length, const Tokenizer& tokenizer) {
  const auto lines = [](std::uint64_t n) {
    return grouped(static_cast<std::int64_t>(n)) + (n == 1 ? " line" : " lines");
  };
  if (set.cut > 0)
    log_warning("{} cut behind {} tokens (data.length)", lines(set.cut), grouped(length + 1));
  if (set.cut_off > 0)
    log_warning("{} left out: all that is learnt of them lies behind {} tokens (data.length)",
                lines(set.cut_off), grouped(length + 1));
  if (const std::uint64_t others = set.left_out - set.cut_off; others > 0)
    log_warning("{} left out: nothing of them is learnt", lines(others));
  if (set.joined > 0)
    log_warning(
        "{} whose prompt and completion share a token, which counts as the prompt's: {} is the "
        "first; a prompt that ends at the end of a word has none",
        lines(set.joined), set.first_joined);
  if (set.kind != JsonlKind::Messages && !tokenizer.end_of_text())
    log_warning(
        "the tokenizer ({}) has no token that ends a text: the model does not learn where one ends",
        tokenizer.kind());
}

// A line that a model has learnt says nothing of what it makes of others.
void need_others(const std::vector<CorpusFile>& trained, const std::vector<CorpusFile>& validated) {
  std::set<Path> known;
  for (const CorpusFile& file : trained) known.insert(std::filesystem::weakly_canonical(file.path));
  for (const CorpusFile& file : validated)
    if (known.contains(std::filesystem::weakly_canonical(file.path)))
      throw UserError("E0950", "a file is to be trained on and to be validated on")
          .at(file.path.string())
          .saw("it in data.jsonl and in data.validation_jsonl")
          .need("other lines to validate on than to train on")
          .advice(
              "name the files of data.jsonl so that it is none of them; or leave "
              "data.validation_jsonl out: a share of the lines is kept for validation");
}

// `templates`: the recipe whose tokenizer has the chat template beside it.
std::unique_ptr<RunData> open_jsonl(const Recipe& recipe, const Recipe& templates, bool quiet) {
  const InterruptScope interrupts;
  const DataSection& d = recipe.data;
  std::vector<CorpusFile> files = list_jsonl(d.jsonl, recipe.folder);
  std::shared_ptr<const Tokenizer> tokenizer = tokenizer_for(recipe, files);
  const std::vector<CorpusFile> apart = list_jsonl(d.validation_jsonl, recipe.folder);
  need_others(files, apart);
  files.insert(files.end(), apart.begin(), apart.end());
  JsonlSetOptions options;
  options.length = tokens_an_example(recipe);
  options.validation = apart.empty() ? d.validation : 0;
  options.validation_files = apart.size();
  options.on_line = [] { InterruptScope::leave_if_asked(); };
  std::optional<LoadedChatTemplate> form;
  std::optional<JsonlEncoder> encoder;
  JsonlSet set = read_jsonl(
      files,
      [&](JsonlKind kind) -> JsonlEncoder& {
        if (kind == JsonlKind::Messages) form = template_for(templates);
        return encoder.emplace(*tokenizer, form ? &*form : nullptr);
      },
      options);
  InterruptScope::leave_if_asked();
  if (!quiet) say_counts(set, options.length, *tokenizer);
  return std::make_unique<JsonlRunData>(std::move(tokenizer), std::move(set), std::move(files),
                                        has_micro_batches(recipe), std::move(form));
}

// With the run's own tokenizer, whatever the recipe would make of today's lines.
std::unique_ptr<RunData> reopen(const Recipe& recipe, const KnownData& known, bool quiet) {
  Recipe own = recipe;
  const Path tokenizer = own_tokenizer(known.run);
  if (path_exists(tokenizer / kTokenizerFile)) {
    if (!recipe.data.tokenizer.path.empty()) has_given_tokenizer(recipe, known.run);
    own.data.tokenizer.path = std::filesystem::absolute(tokenizer).string();
    own.data.tokenizer.kind.clear();
  }
  return open_jsonl(own, recipe, quiet);
}

SettingValues with_example(SettingValues facts, const Recipe& recipe) {
  facts["length"] = tokens_an_example(recipe);
  if (has_micro_batches(recipe)) facts["weights"] = std::int64_t{1};
  return facts;
}

// No line is read unless a tokenizer is to be made of them.
SettingValues facts_or_assumed(const Recipe& recipe) {
  const TokenizerSpec& t = recipe.data.tokenizer;
  const auto vocab = [&](std::int64_t ids) { return with_example({{"vocab", ids}}, recipe); };
  if (recipe.model.whole("vocab") > 0) return with_example({}, recipe);
  const TokenizerKind* kind = find_tokenizer_kind(t.kind);
  if (t.path.empty() && kind && kind->ids)
    if (const auto ids = kind->ids(kind->settings_of(t.settings))) return vocab(*ids);
  try {
    const auto files =
        t.path.empty() ? list_jsonl(recipe.data.jsonl, recipe.folder) : std::vector<CorpusFile>();
    return vocab(tokenizer_for(recipe, files)->vocab_size());
  } catch (const DataError& e) {
    if (e.code() != "E0510" && e.code() != "E0601") throw;
    constexpr std::int64_t kAssumed = 256;
    log_warning(
        "the recipe's data is not there, so its vocabulary is taken as {} ids; "
        "--set model.vocab=N for the true one ({})",
        kAssumed, e.headline());
    return vocab(kAssumed);
  }
}

SequenceOptions training_options(const Recipe& recipe, std::uint64_t position) {
  SequenceOptions o;
  o.order = training_order(recipe, position);
  o.length = tokens_an_example(recipe);
  o.micro_batches = recipe.train.accumulate;
  return o;
}

}  // namespace

JsonlRunData::JsonlRunData(std::shared_ptr<const Tokenizer> tokenizer, JsonlSet set,
                           std::vector<CorpusFile> files, bool has_weights,
                           std::optional<LoadedChatTemplate> form)
    : tokenizer_(std::move(tokenizer)),
      set_(std::move(set)),
      files_(std::move(files)),
      has_weights_(has_weights),
      form_(std::move(form)) {}

SettingValues JsonlRunData::facts(const Recipe& recipe) const {
  return with_example({{"vocab", std::int64_t{tokenizer_->vocab_size()}}}, recipe);
}

std::vector<std::string> JsonlRunData::columns() const {
  std::vector<std::string> names{"tokens", "targets"};
  if (has_weights_) names.emplace_back("weights");
  return names;
}

void JsonlRunData::check(const Recipe& recipe) const {
  const auto examples = static_cast<std::int64_t>(set_.train->size());
  if (const std::int64_t a_step = windows_a_step(recipe); examples < a_step)
    log_warning(
        "data.jsonl has {} to train on and a step takes {}: every step reads all of them "
        "more than once; more lines, or a smaller train.batch",
        counted(examples, "example"), grouped(a_step));
}

std::unique_ptr<ExampleSource> JsonlRunData::training(const Recipe& recipe, std::uint64_t position,
                                                      int prefetch) const {
  SequenceOptions o = training_options(recipe, position);
  o.order.prefetch = prefetch;
  o.has_weights = has_weights_;
  return std::make_unique<SequenceExamples>(set_.sequences, set_.train, o);
}

std::unique_ptr<ExampleSource> JsonlRunData::validation(const Recipe& recipe) const {
  SequenceOptions o;
  o.order = validation_order(recipe);
  o.length = tokens_an_example(recipe);
  o.has_weights = has_weights_;
  return std::make_unique<SequenceExamples>(set_.sequences, set_.validation, o);
}

std::string JsonlRunData::place_of(std::uint32_t sequence) const {
  const auto file = static_cast<std::size_t>(
      std::ranges::upper_bound(set_.file_ends, std::size_t{sequence}) - set_.file_ends.begin());
  return fmt::format("{}:{}", files_[file].name, set_.lines[sequence]);
}

std::string JsonlRunData::places_of_step(const Recipe& recipe, std::uint64_t position) const {
  constexpr std::size_t kShown = 32;
  const std::vector<std::uint64_t> read = examples_of_step(recipe, set_.train->size(), position);
  std::string text;
  for (std::size_t i = 0; i < std::min(read.size(), kShown); ++i)
    text += (text.empty() ? "" : ", ") + place_of((*set_.train)[read[i]]);
  if (read.size() > kShown) text += fmt::format(" and {} more", read.size() - kShown);
  return "lines " + text;
}

std::int64_t JsonlRunData::tokens_of(const std::vector<std::uint32_t>& which) const {
  std::int64_t sum = 0;
  for (const std::uint32_t i : which) sum += set_.sequences->inputs(i);
  return sum;
}

std::int64_t JsonlRunData::targets_of(const std::vector<std::uint32_t>& which) const {
  std::int64_t sum = 0;
  for (const std::uint32_t i : which) sum += set_.sequences->targets(i);
  return sum;
}

json JsonlRunData::record() const {
  const auto identity = [&](const std::vector<std::uint32_t>& which) -> json {
    if (which.empty()) return nullptr;
    return {{"examples", which.size()}, {"xxh3", hex16(set_.sequences->hash_of(which))}};
  };
  json files = json::array();
  for (const CorpusFile& f : files_) files.push_back({f.name, f.size, f.modified});
  json record = {{"train", identity(*set_.train)},
                 {"validation", identity(*set_.validation)},
                 {"tokenizer", hex16(tokenizer_->fingerprint())},
                 {"files", std::move(files)}};
  if (form_) record["template"] = hex16(hash64(std::as_bytes(std::span(form_->form.source()))));
  return parse_json(json_text(record));  // names of files as data.json keeps them
}

// What stands before the first answer of the first line; of an answer to nothing its first token,
// which no model learns to write.
std::optional<SamplePrompt> JsonlRunData::sample_prompt() const {
  if (set_.kind == JsonlKind::Text) return std::nullopt;
  const std::uint32_t line = (has_validation() ? set_.validation : set_.train)->front();
  SamplePrompt prompt;
  std::size_t k = 0;
  do {
    const std::uint32_t token = set_.sequences->token(line, k++);
    prompt.tokens.push_back(static_cast<std::int32_t>(token & ~kLearntToken));
  } while ((set_.sequences->token(line, k) & kLearntToken) == 0);
  if (const auto end = tokenizer_->end_of_text()) prompt.ends.push_back(*end);
  if (!form_) return prompt;
  if (const auto eos = form_->variables.find("eos_token");
      eos != form_->variables.end() && eos->is_string())
    if (const auto ids = tokenizer_->encode(eos->get<std::string>()); ids.size() == 1)
      prompt.ends.push_back(ids[0]);
  return prompt;
}

json JsonlRunData::counts() const {
  return {{"train", tokens_of(*set_.train)},
          {"learnt", targets_of(*set_.train)},
          {"validation", tokens_of(*set_.validation)}};
}

std::string JsonlRunData::describe() const {
  const auto part = [&](const std::vector<std::uint32_t>& which, const char* what) {
    return fmt::format("{} {}examples of {} tokens, of which {} are learnt",
                       grouped(static_cast<std::int64_t>(which.size())), what,
                       human_count(static_cast<double>(tokens_of(which))),
                       human_count(static_cast<double>(targets_of(which))));
  };
  std::string text = part(*set_.train, "training ");
  text += has_validation() ? "; " + grouped(static_cast<std::int64_t>(set_.validation->size())) +
                                 " for validation"
                           : "; none for validation";
  return text + fmt::format("; {} tokenizer; {} in memory", tokenizer_->kind(),
                            human_bytes(set_.sequences->bytes()));
}

SourceKind jsonl_source() {
  SourceKind kind;
  kind.name = "jsonl";
  kind.is_named = [](const Recipe& r) { return !r.data.jsonl.empty(); };
  kind.open = [](const Recipe& r, bool quiet) { return open_jsonl(r, r, quiet); };
  kind.reopen = reopen;
  kind.facts = facts_or_assumed;
  return kind;
}

}  // namespace aloft
