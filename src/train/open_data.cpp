// The data of a recipe: text that is packed into a cache, or tokens that lie in files already.
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "data/open_tokens.h"
#include "train/trainer.h"

namespace aloft {
namespace {

// Ids from here on say nothing about the vocabulary: what a file of 16-bit ids could hold at most.
constexpr std::int32_t kUnknownVocab = 65536;

Dataset open_given_tokens(const Recipe& recipe) {
  const auto open = [&](const std::string& path) { return open_tokens(recipe.folder / path); };
  Dataset data{nullptr, open(recipe.data.train_tokens), std::nullopt, {}};
  if (!recipe.data.validation_tokens.empty()) {
    data.validation = open(recipe.data.validation_tokens);
    data.info.validation_tokens = data.validation->size();
  }
  if (!recipe.data.tokenizer.path.empty())
    data.tokenizer = load_tokenizer(recipe.folder / recipe.data.tokenizer.path);
  data.info.folder = (recipe.folder / recipe.data.train_tokens).parent_path();
  data.info.train_tokens = data.train.size();
  return data;
}

}  // namespace

Path default_cache() {
  const char* base = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  return (base && *base ? Path(base) : Path(home ? home : "/tmp") / ".cache") / "aloft";
}

namespace {

DatasetSpec dataset_spec(const Recipe& recipe) {
  if (recipe.data.text.empty())
    throw UserError("E0717", "the recipe names no text")
        .need("data.text, a list of files, folders or globs; or data.train_tokens, a token file")
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

// What is no text is rarely meant to be; what cannot be opened is missed.
void say_skipped(const std::vector<SkippedFile>& skipped, bool quiet) {
  constexpr int kShown = 10;
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

}  // namespace

std::optional<Dataset> cached_data(const Recipe& recipe) {
  return find_dataset(dataset_spec(recipe));
}

Dataset open_data(const Recipe& recipe, bool quiet) {
  if (!recipe.data.train_tokens.empty()) return open_given_tokens(recipe);
  const DatasetSpec spec = dataset_spec(recipe);
  make_folder(spec.cache);
  std::string stage;
  Dataset data = open_dataset(spec, [&](const PackProgress& p) {
    if (quiet || stage == p.stage) return;
    stage = p.stage;
    log_info("preparing data: {}", stage);
  });
  say_skipped(data.info.skipped, quiet);
  return data;
}

std::int64_t vocabulary_of(const Recipe& recipe, const Dataset& data) {
  if (data.tokenizer) return data.tokenizer->vocab_size();
  if (data.train.vocab() < kUnknownVocab) return data.train.vocab();
  if (recipe.model.vocab > 0) return 0;
  throw UserError("E0722", "the vocabulary of the tokens is not known")
      .at(data.train.name())
      .need("model.vocab, or data.tokenizer.path")
      .advice("--set model.vocab=50257 for GPT-2's");
}

}  // namespace aloft
