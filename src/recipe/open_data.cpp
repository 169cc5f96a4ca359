#include "recipe/open_data.h"

#include <algorithm>
#include <limits>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/text.h"
#include "data/open_tokens.h"
#include "recipe/what_lies_there.h"

namespace aloft {
namespace {

// Ids from here on say nothing about the vocabulary: what a file of 16-bit ids could hold at most.
constexpr std::int32_t kUnknownVocab = 65536;

// The tokenizer that `aloft data build` left beside a shard, where it is the one that made it.
std::shared_ptr<const Tokenizer> tokenizer_beside(const TokenSource& tokens) {
  const Path folder = Path(tokens.name()).parent_path();
  if (!tokens.tokenizer() || !path_exists(folder / kTokenizerFile)) return nullptr;
  try {
    std::shared_ptr<const Tokenizer> found = load_tokenizer(folder);
    return found->fingerprint() == *tokens.tokenizer() ? found : nullptr;
  } catch (const DataError& e) {
    log_warning("the tokenizer beside {} cannot be used: {}", tokens.name(), e.headline());
    return nullptr;
  }
}

// Ids mean something only with the tokenizer that made them; files of others do not name theirs.
void need_made_by(const TokenSource& tokens, std::optional<std::uint64_t> tokenizer,
                  const std::string& whose) {
  if (!tokens.tokenizer() || !tokenizer || *tokens.tokenizer() == *tokenizer) return;
  DataError e("E0523", "the tokens were made by another tokenizer");
  e.add_line("at", tokens.name());
  e.add_line("saw", "a shard of the tokenizer " + hex16(*tokens.tokenizer()));
  e.add_line("need", hex16(*tokenizer) + ", that of " + whose);
  e.add_line("try", tokenizer_beside(tokens)
                        ? "the right one lies beside the shard: data.tokenizer.path = " +
                              in_quotes(Path(tokens.name()).parent_path().string())
                        : "name the tokenizer that made them, or make the tokens anew");
  throw e;
}

Dataset open_given_tokens(const Recipe& recipe) {
  const auto open = [&](const std::string& path) { return open_tokens(recipe.folder / path); };
  Dataset data{nullptr, open(recipe.data.train_tokens), std::nullopt, {}};
  if (!recipe.data.tokenizer.path.empty()) {
    const Path path = recipe.folder / recipe.data.tokenizer.path;
    data.tokenizer = load_tokenizer(path);
    need_made_by(data.train, data.tokenizer->fingerprint(), path.string());
  } else {
    data.tokenizer = tokenizer_beside(data.train);
  }
  if (!recipe.data.validation_tokens.empty()) {
    data.validation = open(recipe.data.validation_tokens);
    need_made_by(*data.validation,
                 data.tokenizer ? data.tokenizer->fingerprint() : data.train.tokenizer(),
                 "the training tokens, " + data.train.name());
    data.info.validation_tokens = data.validation->size();
  }
  data.info.folder = (recipe.folder / recipe.data.train_tokens).parent_path();
  data.info.train_tokens = data.train.size();
  return data;
}

DatasetSpec dataset_spec(const Recipe& recipe) {
  if (recipe.data.text.empty())
    throw UserError("E0717", "the recipe names no text")
        .need(
            "data.text, a list of files, folders or globs; data.jsonl, files of JSON lines; or "
            "data.train_tokens, a token file")
        .advice("--set 'data.text=[\"input.txt\"]'");
  DatasetSpec spec;
  spec.text = recipe.data.text;
  spec.base = recipe.folder;
  spec.tokenizer = recipe.data.tokenizer;
  spec.validation = recipe.data.validation;
  spec.seed = 0;  // the split does not change with the run's seed
  spec.cache = recipe.data.cache.empty() ? default_cache() : Path(recipe.data.cache);
  return spec;
}

constexpr int kShown = 10;

// What is no text is rarely meant to be; what cannot be opened is missed.
void say_skipped(const std::vector<SkippedFile>& skipped, bool quiet) {
  int shown[2] = {0, 0};
  for (const SkippedFile& s : skipped) {
    if (quiet && !s.is_closed) continue;
    const LogLevel level = s.is_closed ? LogLevel::Warning : LogLevel::Info;
    const int n = ++shown[s.is_closed];
    if (n <= kShown) log_line(level, fmt::format("skipped {}: {}", s.path.string(), s.why));
    if (n == kShown + 1)
      log_line(level, "skipped more files: `aloft data build --json` lists them");
  }
}

// Bytes can be learnt whatever they mean: what was named is taken, and said.
void say_doubtful(const std::vector<DoubtfulFile>& doubtful) {
  int shown = 0;
  for (const DoubtfulFile& f : doubtful) {
    if (++shown > kShown) {
      log_warning("more files may be no text: `aloft data build --json` lists them");
      break;
    }
    log_warning(
        "{} may be no text: {}. Its bytes are trained on as they are; if that is not meant: {}",
        f.path.string(), f.why, f.advice);
  }
}

}  // namespace

void need_tokenizer_of_init(const Recipe& recipe) {
  const auto is_said = [](const auto& o) { return o.first.starts_with("data.tokenizer."); };
  if (recipe.model.init.empty() || !recipe.data.tokenizer.path.empty()) return;
  if (std::ranges::any_of(recipe.origin, is_said)) return;
  UserError e("E0717", "the run begins from weights that have no tokenizer beside them");
  e.add_line("at", recipe.model.init);
  say_no_tokenizer(e, recipe.model.init);
  e.add_line("try", "data.tokenizer.path, where it lies elsewhere");
  throw e;
}

void say_odd_files(const Dataset& data, bool quiet) {
  say_skipped(data.info.skipped, quiet);
  say_doubtful(data.info.doubtful);
}

std::optional<Dataset> cached_data(const Recipe& recipe, std::uint64_t signature) {
  if (signature == 0 || !recipe.data.train_tokens.empty()) return std::nullopt;
  return find_dataset(dataset_spec(recipe).cache, signature);
}

std::optional<Dataset> cached_data(const Recipe& recipe) {
  return find_dataset(dataset_spec(recipe));
}

std::vector<CorpusFile> files_of_text(const Recipe& recipe) {
  if (!recipe.data.train_tokens.empty()) return {};
  return open_corpus(recipe.data.text, recipe.folder).files;
}

Dataset open_data(const Recipe& recipe, bool quiet) {
  if (!recipe.data.train_tokens.empty()) return open_given_tokens(recipe);
  need_tokenizer_of_init(recipe);
  const DatasetSpec spec = dataset_spec(recipe);
  make_folder(spec.cache);
  std::string stage;
  const InterruptScope interrupts;
  Dataset data = open_dataset(spec, [&](const PackProgress& p) {
    InterruptScope::leave_if_asked();
    if (quiet || stage == p.stage) return;
    stage = p.stage;
    log_info("preparing data: {}", stage);
  });
  InterruptScope::leave_if_asked();
  say_odd_files(data, quiet);
  return data;
}

SettingValues facts_of(const Recipe& recipe, const Dataset& data) {
  const auto vocab = [](std::int64_t ids) { return SettingValues{{"vocab", ids}}; };
  if (data.tokenizer) return vocab(data.tokenizer->vocab_size());
  if (data.train.vocab() < kUnknownVocab) return vocab(data.train.vocab());
  if (recipe.model.whole("vocab") > 0) return {};
  throw UserError("E0722", "the vocabulary of the tokens is not known")
      .at(data.train.name())
      .need("model.vocab, or data.tokenizer.path")
      .advice("--set model.vocab=N, the ids that the tokens may have");
}

}  // namespace aloft
