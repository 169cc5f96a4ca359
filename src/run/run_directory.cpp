#include "run/run_directory.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/leftovers.h"
#include "base/log.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/choices_json.h"
#include "checkpoint/run_name.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kLock = "run.lock";

// What lies in a folder besides what this program leaves there before a run has begun.
std::vector<std::string> contents(const Path& folder) {
  std::vector<std::string> names;
  for (const Path& path : list_folder(folder)) {
    std::string name = path.filename().string();
    const bool ours =
        name == kLock || (name.starts_with(".run.json.") && writer_of_temporary(name).has_value());
    if (!ours) names.push_back(std::move(name));
  }
  return names;
}

[[noreturn]] void foreign(const Path& folder, const std::vector<std::string>& names, bool resume) {
  std::string seen;
  for (std::size_t i = 0; i < names.size() && i < 3; ++i) seen += (i ? ", " : "") + names[i];
  if (names.size() > 3) seen += ", ...";
  throw UserError("E0820", "the run directory holds files that are no run's")
      .at(folder.string())
      .saw(seen)
      .need(resume ? "run.json, or whole checkpoints of the run that is to go on"
                   : "a folder that does not exist or is empty")
      .advice("another --out");
}

// Before anything is made or changed. `resume` without a record wants a checkpoint to go on from.
void refuse_what_is_not_ours(const Path& folder, bool resume) {
  if (is_file(folder))
    throw UserError("E0820", "the run directory is a file")
        .at(folder.string())
        .need("a folder that does not exist or is empty")
        .advice("another --out");
  if (!is_folder(folder)) return;  // make_folder says what is in the way
  if (has_name(folder / "run.json")) {
    if (resume) return;
    throw UserError("E0811", "the run directory holds a run already")
        .at(folder.string())
        .advice("--resume to go on with it, or another --out");
  }
  const std::vector<std::string> names = contents(folder);
  if (names.empty()) return;
  if (resume && CheckpointFolder(folder / "checkpoints").newest()) return;
  foreign(folder, names, resume);
}

// Of a run whose run.json was lost.
json known_by(const CheckpointMeta& meta) {
  json known = json::object();
  if (!meta.recipe.is_null()) known["recipe"] = meta.recipe;
  if (!meta.data.is_null()) known["data"] = meta.data;
  if (!meta.choices.all().empty()) known["choices"] = json_of(meta.choices);
  log_warning("run.json was lost: this run is compared with what its checkpoint of step {} says{}",
              meta.step, meta.recipe.is_null() ? ", which is no more than its model" : "");
  return known;
}

}  // namespace

json parse_run_record(std::string_view text, const std::string& name) {
  json record = parse_json(text);
  if (record.is_object() && record.contains("recipe") && record["recipe"].is_object())
    return record;
  throw DataError("E0643", "run.json is not the record of a training run")
      .at(name)
      .saw(record.is_discarded() ? std::string(json_problem(text)) : "JSON without a recipe")
      .need("a JSON object as `aloft train` writes it")
      .advice("move it away: a run goes on from its checkpoints alone, too");
}

json read_run_record(const Path& path) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 30;
  return parse_run_record(read_file(path, kLimit), path.string());
}

namespace {
std::string text_in(const json& record, const char* key) {
  const auto text = record.is_object() ? record.find(key) : record.end();
  return text != record.end() && text->is_string() ? text->get<std::string>() : "";
}
}  // namespace

std::string run_name(const json& record) { return text_in(record, "run"); }

std::string recorded_device(const json& record) { return text_in(record, "device"); }

std::int64_t saved_step(const json& record) {
  const auto number = [](const json& of, const char* key) -> std::int64_t {
    const json value = of.is_object() ? of.value(key, json()) : json();
    return value.is_number_integer() ? value.get<std::int64_t>() : 0;
  };
  if (!record.is_object()) return 0;
  if (record.contains("saved")) return number(record, "saved");
  // Programs before did not write it: but for errors a run ended behind a save, and a resume came
  // behind one.
  std::int64_t step = 0;
  if (!record.contains("error")) step = number(record.value("result", json()), "steps");
  if (const json history = record.value("history", json()); history.is_array())
    for (const json& entry : history) step = std::max(step, number(entry, "step"));
  return step;
}

RunDirectory::RunDirectory(Path folder, bool resume) : folder_(std::move(folder)) {
  refuse_what_is_not_ours(folder_, resume);
  std::error_code ignored;
  for (Path p = folder_; !p.empty() && !fs::exists(p, ignored); p = p.parent_path())
    made_.push_back(p);
  make_folder(folder_);
  lock_ = std::make_unique<FolderLock>(folder_ / kLock);
  id_ = folder_id(folder_);
  refuse_what_is_not_ours(folder_, resume);  // what another process did meanwhile
  if (has_name(record_path())) known_ = found_ = read_run_record(record_path());
  if (!found_.is_null()) {
    run_ = run_name(found_);
  } else if (const auto newest = CheckpointFolder(checkpoints()).newest(); resume && newest) {
    run_ = newest->meta.run;
    known_ = known_by(newest->meta);
  } else {
    run_ = new_run_name();
  }
  for (const Path& place : {folder_, checkpoints(), samples(), tokenizer()})
    remove_leftovers(place);
}

RunDirectory::~RunDirectory() {
  lock_.reset();
  std::error_code ignored;
  for (const Path& p : made_) fs::remove(p, ignored);  // only where it is empty
}

void RunDirectory::warn_if_moved(std::int64_t step) {
  if (!id_ || folder_id(folder_) == id_) return;
  id_.reset();
  log_warning(
      "{}: the run's folder was moved or removed: checkpoints and run.json from step {} on lie in "
      "a "
      "new folder of that name; metrics and events go on in the old one",
      folder_.string(), step);
}

void RunDirectory::write_record(const json& record) {
  write_file_atomic(record_path(), json_text(record, 2) + "\n");
  for (const Path& place : {checkpoints(), samples()}) make_folder(place);
}

}  // namespace aloft
