#include "train/run_start.h"

#include <fmt/format.h>

#include <map>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "precision/recipe_json.h"
#include "train/memory_need.h"
#include "train/resume_changes.h"

namespace aloft {
namespace {

using nlohmann::json;

constexpr std::uint64_t kRecordLimit = std::uint64_t{1} << 30;

// A record of the run's directory; null where there is none.
json read_record(const Path& path) {
  if (!path_exists(path)) return nullptr;
  const std::string text = read_file(path, kRecordLimit);
  json record = parse_json(text);
  if (record.is_object()) return record;
  throw DataError("E0643", path.filename().string() + " is not the record of a run")
      .at(path.string())
      .saw(std::string(json_problem(text)))
      .advice("--resume --force goes on without it, and writes it anew");
}

json read_record(const Path& path, bool force) {
  try {
    return read_record(path);
  } catch (const DataError& e) {
    if (!force) throw;
    log_warning("{}", e.headline());
    return nullptr;
  }
}

json identity_of(const TokenSource& tokens) {
  return {{"tokens", tokens.size()}, {"xxh3", hex16(tokens.content_hash())}};
}

// Where files are many, their number and bytes must do.
json files_of(const DatasetInfo& info) {
  constexpr std::size_t kMost = 20000;
  json list = json::array();
  if (info.text.size() > kMost) return list;
  for (const CorpusFile& f : info.text) list.push_back({f.name, f.size, f.modified});
  return list;
}

json record_of(const Dataset& data) {
  json record = {
      {"train", identity_of(data.train)}, {"validation", nullptr}, {"tokenizer", nullptr}};
  if (data.validation) record["validation"] = identity_of(*data.validation);
  if (data.tokenizer) record["tokenizer"] = hex16(data.tokenizer->fingerprint());
  record["files"] = files_of(data.info);
  record["train_bytes"] = data.info.train_bytes;
  record["validation_bytes"] = data.info.validation_bytes;
  return record;
}

// How the files differ, a few of them by name: "new: b.txt"; empty where none is known to.
std::vector<std::string> file_differences(const json& before, const json& now) {
  std::map<std::string, std::pair<json, json>> files;  // name -> then, now
  const auto collect = [&](const json& record, auto member) {
    const auto list = record.find("files");
    if (list == record.end() || !list->is_array()) return;
    for (const json& f : *list)
      if (f.is_array() && f.size() == 3 && f[0].is_string())
        files[f[0].get<std::string>()].*member = f[1];
  };
  collect(before, &std::pair<json, json>::first);
  collect(now, &std::pair<json, json>::second);
  constexpr std::size_t kShown = 5;
  std::vector<std::string> lines;
  std::size_t more = 0;
  for (const auto& [name, sizes] : files) {
    const auto& [then, is] = sizes;
    if (then == is) continue;
    if (lines.size() == kShown) {
      ++more;
      continue;
    }
    lines.push_back(then.is_null() ? "a new file: " + name
                    : is.is_null()
                        ? "a file that is gone: " + name
                        : fmt::format("{} had {} bytes, now {}", name, then.dump(), is.dump()));
  }
  if (more > 0) lines.push_back(fmt::format("and {} more", more));
  return lines;
}

// The parts of data.json that decide what is learnt.
bool is_same_data(const json& before, const json& now) {
  for (const char* key : {"train", "validation", "tokenizer"})
    if (before.value(key, json()) != now.value(key, json())) return false;
  return true;
}

// What the schedule lacks, before anything is prepared for it.
void check_length(const Recipe& recipe) {
  if (recipe.train.epochs > 0) return;  // the data decides
  static_cast<void>(schedule_rule(recipe));
  const std::int64_t span = recipe.schedule.steps > 0 ? recipe.schedule.steps : recipe.train.steps;
  if (recipe.schedule.warmup > span)
    log_warning("schedule.warmup is {} updates and the run {}: the learning rate stays below {:g}",
                recipe.schedule.warmup, span, recipe.optimizer.lr);
}

class Resumption {
 public:
  Resumption(const Recipe& recipe, const TrainOptions& options, const json& found)
      : options_(options),
        record_(found),
        data_record_(read_record(options.out / "data.json", options.force)) {
    recipe_ = recipe;
  }

  RunStart start() {
    compare_recipes();
    Dataset data = open_own_data();
    json data_record = record_of(data);
    compare_data(data_record);
    return {recipe_, std::move(data), std::move(data_record), started(), history()};
  }

 private:
  void compare_recipes() {
    if (!record_.is_object() || !record_.contains("recipe")) return;
    const json& before = record_["recipe"];
    if (!recipe_.precision.is_resolved()) keep_precision(before);
    changes_ = recipe_changes(before, recipe_);
    refuse_fixed(changes_);
    say_changes(changes_, recipe_);
  }

  // `auto` was settled when the run began; another measurement must not end it.
  void keep_precision(const json& before) {
    std::vector<RecipeMistake> mistakes;
    const PrecisionRecipe settled =
        precision_of_json(before.value("precision", json::object()), mistakes);
    if (mistakes.empty() && settled.is_resolved()) recipe_.precision = settled;
  }

  Path own_tokenizer() const { return options_.out / "tokenizer"; }

  // With the run's tokenizer, whatever the recipe would make of today's text.
  Dataset open_own_data() {
    Recipe recipe = recipe_;
    if (!path_exists(own_tokenizer() / kTokenizerFile)) return open_data(recipe, options_.quiet);
    if (!recipe.data.tokenizer.path.empty()) refuse_other_tokenizer();
    if (recipe.data.train_tokens.empty())
      if (auto cached = cached_data(recipe)) {
        const std::string made = hex16(cached->tokenizer->fingerprint());
        if (made == hex16(load_tokenizer(own_tokenizer())->fingerprint()))
          return *std::move(cached);
      }
    recipe.data.tokenizer.path = std::filesystem::absolute(own_tokenizer()).string();
    recipe.data.tokenizer.kind.clear();
    return open_data(recipe, options_.quiet);
  }

  void refuse_other_tokenizer() const {
    const Path given = recipe_.folder / recipe_.data.tokenizer.path;
    const auto own = load_tokenizer(own_tokenizer());
    if (load_tokenizer(given)->fingerprint() == own->fingerprint()) return;
    throw UserError("E0817", "this recipe cannot go on with the run: its tokenizer is another one")
        .saw(given.string())
        .need("the run's own, " + own_tokenizer().string())
        .advice("leave data.tokenizer as it was, or begin a new run");
  }

  void compare_data(const json& now) {
    if (!data_record_.is_object() || is_same_data(data_record_, now)) return;
    UserError e("E0818", "the data of the run is not what it was");
    for (const std::string& line : file_differences(data_record_, now)) e.add_line("saw", line);
    for (const RecipeChange& c : changes_)
      if (c.meaning == OnResume::Data) e.add_line("saw", c.str());
    const auto tokens = [](const json& record) {
      return record.value("train", json::object()).value("tokens", json()).dump();
    };
    e.add_line("saw", fmt::format("{} training tokens, now {}", tokens(data_record_), tokens(now)));
    e.add_line("try", "bring the data back as it was, or --force to go on with the new one");
    if (!options_.force) throw e;
    log_warning("{}: going on with the new data, as --force says", e.headline());
    is_other_data_ = true;
  }

  std::string started() const {
    if (!record_.is_object()) return "";
    const auto it = record_.find("started");
    return it != record_.end() && it->is_string() ? it->get<std::string>() : "";
  }

  // The run's earlier resumes, and this one.
  json history() const {
    json all = json::array();
    if (record_.is_object())
      if (const auto it = record_.find("history"); it != record_.end() && it->is_array()) all = *it;
    json entry = {{"at", utc_timestamp()}, {"aloft", ALOFT_VERSION}, {"changed", json::object()}};
    for (const RecipeChange& c : changes_) entry["changed"][c.key] = {c.before, c.now};
    if (is_other_data_) entry["data_before"] = data_record_;
    if (is_other_data_) entry["data_before"].erase("files");
    all.push_back(std::move(entry));
    return all;
  }

  const TrainOptions& options_;
  json record_, data_record_;
  Recipe recipe_;
  std::vector<RecipeChange> changes_;
  bool is_other_data_ = false;
};

}  // namespace

RunStart begin_run(const Recipe& recipe, const TrainOptions& options, const json& found) {
  check_length(recipe);
  need_memory_for(recipe, 0);  // before any text is read
  if (options.resume && !found.is_null()) return Resumption(recipe, options, found).start();
  Dataset data = open_data(recipe, options.quiet);
  json data_record = record_of(data);
  return {recipe, std::move(data), std::move(data_record), "", json::array()};
}

void keep_data(const RunStart& start, const Path& run) {
  if (start.data.tokenizer) {
    make_folder(run / "tokenizer");
    start.data.tokenizer->save(run / "tokenizer");
  }
  write_file_atomic(run / "data.json", json_text(start.data_record) + "\n");
}

}  // namespace aloft
