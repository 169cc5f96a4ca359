#include "sources/tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/data_record.h"
#include "data/order.h"
#include "data/token_examples.h"
#include "data/tokenizers/tokenizer_kind.h"
#include "recipe/run_length.h"
#include "sources/named_places.h"
#include "sources/run_tokenizer.h"
#include "sources/source_kind.h"

namespace aloft {
namespace {

using nlohmann::json;

// Ids that the tokenizer does not know stand for nothing.
std::uint64_t bytes_of(const TokenSource& tokens, const Tokenizer& tokenizer) {
  std::vector<std::uint64_t> length(static_cast<std::size_t>(tokenizer.vocab_size()));
  for (std::size_t id = 0; id < length.size(); ++id)
    length[id] = tokenizer.bytes_of(static_cast<std::int32_t>(id)).size();
  constexpr std::uint64_t kPiece = 1 << 16;
  std::vector<std::int32_t> ids(std::min(kPiece, tokens.size()));
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < tokens.size(); at += ids.size()) {
    ids.resize(std::min(kPiece, tokens.size() - at));
    tokens.read(at, ids);
    for (const std::int32_t id : ids)
      if (static_cast<std::size_t>(id) < length.size()) sum += length[static_cast<std::size_t>(id)];
  }
  return sum;
}

// A step that reads the whole text several times over is rarely meant.
void warn_of_few_windows(const Recipe& recipe, std::int64_t windows) {
  const std::int64_t a_step = windows_a_step(recipe);
  if (recipe.data.sampling == "random" || windows >= a_step) return;
  log_warning(
      "the training text is {} of {} tokens and a step takes {}: every step reads all of "
      "it more than once; more text, a smaller train.batch or data.length, or data.sampling = "
      "random",
      counted(windows, "window"), tokens_an_example(recipe), a_step);
}

// The data of a run that goes on.
class Reopening {
 public:
  Reopening(const Recipe& recipe, const KnownData& known, bool quiet)
      : recipe_(recipe), known_(known), quiet_(quiet) {}

  std::unique_ptr<RunData> data() {
    Dataset data = open_own_data();
    return std::make_unique<TokenRunData>(std::move(data), is_text_gone_ ? known_.record : json());
  }

 private:
  Path own_tokenizer() const { return aloft::own_tokenizer(known_.run); }

  // The run's own tokens, also where the text that they were made of is gone.
  Dataset open_own_data() {
    try {
      return open_todays_data();
    } catch (const DataError& e) {
      if (e.code() == "E0501") refuse_characters(e);
      if (e.code() != "E0510" && e.code() != "E0511") throw;
      refuse_other_tokens(e);
      std::optional<Dataset> kept = cached_data(recipe_, signature_in(known_.record));
      if (!kept || !is_same_data(known_.record, data_record_of(*kept))) throw;
      log_warning("{}: the run goes on with its own tokens, which lie in {}", e.headline(),
                  kept->info.folder.string());
      is_text_gone_ = true;
      return *std::move(kept);
    }
  }

  // The run's own tokens are of the data that it had: what is asked for anew wants the text.
  void refuse_other_tokens(DataError why) const {
    bool any = false;
    for (const RecipeChange& c : known_.changes)
      if (c.meaning == OnResume::Data) {
        why.add_line("because", c.str());
        any = true;
      }
    if (!any) return;
    why.add_line("try", "bring the text back, or leave [data] as the run had it");
    throw DataError(why);
  }

  // The run's tokenizer has no ids for today's text: no --force helps.
  [[noreturn]] void refuse_characters(const DataError& why) const {
    UserError e("E0818", "the data of the run is not what it was");
    e.add_line("saw", why.headline());
    // Its lines that say which, and in which file: "  saw   U+2603".
    for (const std::string_view line : split(why.what(), '\n'))
      for (const std::string_view label : {"  saw ", "  in "})
        if (line.starts_with(label)) e.add_line("saw", trim(line.substr(label.size())));
    for (const std::string& line : file_differences(known_.record, files_of_text(recipe_)))
      e.add_line("saw", line);
    e.add_line("need",
               "the characters that the run's tokenizer knows, " + own_tokenizer().string());
    e.add_line("try",
               "bring the data back as it was, leave new characters out, or begin a new run");
    throw e;
  }

  // With the run's tokenizer, whatever the recipe would make of today's text.
  Dataset open_todays_data() {
    Recipe recipe = recipe_;
    if (!path_exists(own_tokenizer() / kTokenizerFile)) return open_data(recipe, quiet_);
    const bool is_given_gone =
        !recipe.data.tokenizer.path.empty() && !has_given_tokenizer(recipe_, known_.run);
    if (recipe.data.train_tokens.empty() && !is_given_gone)
      if (auto cached = cached_data(recipe)) {
        const std::string made = hex16(cached->tokenizer->fingerprint());
        if (made == hex16(load_tokenizer(own_tokenizer())->fingerprint())) {
          say_odd_files(*cached, quiet_);
          return *std::move(cached);
        }
      }
    recipe.data.tokenizer.path = std::filesystem::absolute(own_tokenizer()).string();
    recipe.data.tokenizer.kind.clear();
    return open_data(recipe, quiet_);
  }

  const Recipe& recipe_;
  const KnownData& known_;
  bool quiet_, is_text_gone_ = false;
};

// How long examples are, besides: the task's columns go by it.
SettingValues with_length(SettingValues facts, const Recipe& recipe) {
  facts["length"] = tokens_an_example(recipe);
  return facts;
}

// Without reading text where the recipe says enough.
SettingValues facts_or_assumed(const Recipe& recipe) {
  const TokenizerSpec& t = recipe.data.tokenizer;
  const auto vocab = [](std::int64_t ids) { return SettingValues{{"vocab", ids}}; };
  if (recipe.model.whole("vocab") > 0) return {};
  const TokenizerKind* kind = find_tokenizer_kind(t.kind);
  if (recipe.data.train_tokens.empty() && t.path.empty() && kind && kind->ids)
    if (const auto ids = kind->ids(kind->settings_of(t.settings))) return vocab(*ids);
  try {
    return facts_of(recipe, open_data(recipe, false));
  } catch (const DataError& e) {
    if (e.code() != "E0510" && e.code() != "E0601") throw;
    constexpr std::int64_t kAssumed = 256;
    log_warning(
        "the recipe's data is not there, so its vocabulary is taken as {} ids; "
        "--set 'data.text=[\"FILE\"]' or --set model.vocab=N for the true one ({})",
        kAssumed, e.headline());
    return vocab(kAssumed);
  }
}

}  // namespace

std::optional<double> bytes_a_validation_token(const Dataset& data) {
  if (!data.validation || !data.tokenizer || data.validation->size() == 0) return std::nullopt;
  const std::uint64_t bytes = data.info.validation_bytes > 0
                                  ? data.info.validation_bytes
                                  : bytes_of(*data.validation, *data.tokenizer);
  if (bytes == 0) return std::nullopt;
  return static_cast<double>(bytes) / static_cast<double>(data.validation->size());
}

TokenRunData::TokenRunData(Dataset data, json record)
    : data_(std::move(data)),
      record_(record.is_null() ? data_record_of(data_) : std::move(record)),
      bytes_a_target_(bytes_a_validation_token(data_)) {}

SettingValues TokenRunData::facts(const Recipe& recipe) const {
  return with_length(facts_of(recipe, data_), recipe);
}

void TokenRunData::fit(const models::ModelSpec& spec) {
  const auto vocab = static_cast<std::int32_t>(spec.whole("vocab"));
  data_.train = data_.train.with_vocab(vocab);
  if (data_.validation) data_.validation = data_.validation->with_vocab(vocab);
}

std::uint64_t TokenRunData::examples(const Recipe& recipe) const {
  return static_cast<std::uint64_t>(windows_of(recipe, data_.train.size()));
}

// A context that the text does not fill, before a plan is made for it.
void TokenRunData::check(const Recipe& recipe) const {
  const auto context = static_cast<std::uint64_t>(tokens_an_example(recipe));
  static_cast<void>(WindowOrder(data_.train.size(), context, {}));
  warn_of_few_windows(recipe, static_cast<std::int64_t>(examples(recipe)));
}

namespace {
TokenLoaderOptions training_options(const Recipe& recipe, std::uint64_t position) {
  TokenLoaderOptions o;
  o.batch = recipe.train.batch;
  o.context = tokens_an_example(recipe);
  o.order.seed = recipe.train.seed;
  o.order.sampling = recipe.data.sampling == "random" ? Sampling::Random : Sampling::Windows;
  o.position = position;
  return o;
}
}  // namespace

std::unique_ptr<ExampleSource> TokenRunData::training(const Recipe& recipe, std::uint64_t position,
                                                      int prefetch) const {
  TokenLoaderOptions o = training_options(recipe, position);
  o.prefetch = prefetch;
  return std::make_unique<TokenExamples>(data_.train, o);
}

std::string TokenRunData::places_of_step(const Recipe& recipe, std::uint64_t position) const {
  const TokenLoaderOptions o = training_options(recipe, position);
  const WindowOrder order(data_.train.size(), static_cast<std::uint64_t>(o.context), o.order);
  const BatchWalk walk(order.samples_per_epoch(), static_cast<std::uint64_t>(o.batch), o.last);
  const auto step = std::min(position, static_cast<std::uint64_t>(windows_a_step(recipe)));
  std::vector<std::uint64_t> places;
  for (std::uint64_t at = position - step; at < position; ++at)
    places.push_back(order.at(walk.sample(at, 0)).first);
  return fmt::format("windows of {} tokens from training tokens {} on, counted from 0", o.context,
                     list_of_places(places));
}

std::unique_ptr<ExampleSource> TokenRunData::validation(const Recipe& recipe) const {
  return std::make_unique<TokenExamples>(
      *data_.validation, evaluation_options(recipe.train.batch, tokens_an_example(recipe)));
}

json TokenRunData::counts() const {
  return {{"train", data_.info.train_tokens}, {"validation", data_.info.validation_tokens}};
}

std::string TokenRunData::describe() const {
  std::string text = human_count(static_cast<double>(data_.train.size())) + " training tokens";
  text += data_.validation ? ", " + human_count(static_cast<double>(data_.validation->size())) +
                                 " for validation"
                           : ", none for validation";
  text += data_.tokenizer ? fmt::format("; {} tokenizer", data_.tokenizer->kind())
                          : "; no tokenizer (data.tokenizer.path), so no samples, and "
                            "`aloft generate` cannot write text";
  if (const auto bytes = bytes_a_target_) text += fmt::format(", {:.2f} bytes a token", *bytes);
  return text;
}

SourceKind tokens_source() {
  SourceKind kind;
  kind.is_usual = true;
  kind.name = "tokens";
  kind.is_named = [](const Recipe& r) {
    return !r.data.text.empty() || !r.data.train_tokens.empty();
  };
  kind.open = [](const Recipe& recipe, bool quiet) -> std::unique_ptr<RunData> {
    return std::make_unique<TokenRunData>(open_data(recipe, quiet));
  };
  kind.reopen = [](const Recipe& recipe, const KnownData& known, bool quiet) {
    return Reopening(recipe, known, quiet).data();
  };
  kind.facts = [](const Recipe& recipe) { return with_length(facts_or_assumed(recipe), recipe); };
  return kind;
}

}  // namespace aloft
