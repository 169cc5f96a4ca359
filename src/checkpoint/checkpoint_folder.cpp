#include "checkpoint/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/data_record.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPartial = ".partial";
constexpr const char* kOld = ".old";
constexpr const char* kRemoved = ".removed";

std::string name_of_step(std::int64_t step) { return fmt::format("step-{:06}", step); }

Path hidden(const Path& folder, std::int64_t step, const char* ending) {
  return folder / ("." + name_of_step(step) + ending);
}

// What lies in the folder under a name of ours: (path, step), by step.
std::vector<std::pair<Path, std::int64_t>> entries(const Path& folder, std::string_view before,
                                                   std::string_view behind) {
  std::vector<std::pair<Path, std::int64_t>> found;
  for (const Path& path : list_folder(folder)) {
    const std::string name = path.filename().string();
    if (!name.starts_with(before) || !name.ends_with(behind)) continue;
    if (name.size() <= before.size() + behind.size()) continue;
    const std::string_view middle(name.data() + before.size(),
                                  name.size() - before.size() - behind.size());
    if (const auto step = step_in_name(middle)) found.emplace_back(path, *step);
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  return found;
}

// By the recipe that it was saved under; that of the run may have lost the key since.
bool was_kept_for_good(const CheckpointMeta& meta) {
  const nlohmann::json train =
      meta.recipe.is_object() ? meta.recipe.value("train", nlohmann::json()) : nlohmann::json();
  if (!train.is_object()) return false;
  const nlohmann::json every = train.value("keep_every", nlohmann::json());
  return every.is_number_integer() && every > 0 && meta.step % every.get<std::int64_t>() == 0;
}

// Where the run has gone back to and has not got past its trouble since: while that lasts, what
// lies up to there may be all that is from before it. -1: nowhere.
std::int64_t gone_back_to(const std::vector<StoredCheckpoint>& all) {
  const auto newest = std::ranges::max_element(
      all, {}, [](const StoredCheckpoint& c) { return c.meta.rollbacks.size(); });
  if (newest == all.end() || newest->meta.rollbacks.empty()) return -1;
  const Rollback& last = newest->meta.rollbacks.back();
  const bool is_past = std::ranges::any_of(all, [&](const StoredCheckpoint& c) {
    return c.meta.healthy() && c.meta.step >= last.farthest;
  });
  return is_past ? -1 : last.to;
}

void remove_quietly(const Path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) log_warning("cannot remove {}: {}", path.string(), error.message());
}

}  // namespace

std::optional<std::int64_t> step_in_name(std::string_view name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || step < 0 || name != name_of_step(step) ||
      end != name.data() + name.size())
    return std::nullopt;
  return step;
}

CheckpointFolder::CheckpointFolder(Path folder, std::optional<std::string> run, CheckpointUse use)
    : folder_(std::move(folder)), run_(std::move(run)), use_(use) {}

// Nothing where it is not whole, or of another run.
std::optional<CheckpointMeta> CheckpointFolder::checked(const Path& checkpoint, std::int64_t step) {
  try {
    Manifest manifest = read_manifest(checkpoint);
    if (manifest.meta.step != step)
      throw DataError("E0641", "the checkpoint cannot be used: it is of another step")
          .at(checkpoint.string())
          .saw(fmt::format("step {} in its manifest", manifest.meta.step));
    if (!is_ours(manifest.meta)) {
      if (std::find(foreign_.begin(), foreign_.end(), checkpoint) == foreign_.end())
        foreign_.push_back(checkpoint);
      return std::nullopt;
    }
    const std::string text = manifest_text(manifest);
    const auto known = known_.find(checkpoint);
    if (known == known_.end() || known->second != text) {
      check_checkpoint(checkpoint, use_);
      known_[checkpoint] = text;
    }
    return std::move(manifest.meta);
  } catch (const DataError& e) {
    if (std::find(problems_.begin(), problems_.end(), e.what()) == problems_.end())
      problems_.emplace_back(e.what());
    return std::nullopt;
  }
}

std::optional<StoredCheckpoint> CheckpointFolder::newest(
    const std::function<bool(const CheckpointMeta&)>& wanted) {
  auto found = entries(folder_, "", "");
  for (auto it = found.rbegin(); it != found.rend(); ++it)
    if (auto meta = checked(it->first, it->second); meta && (!wanted || wanted(*meta)))
      return StoredCheckpoint{it->first, std::move(*meta)};
  return std::nullopt;
}

std::optional<StoredCheckpoint> CheckpointFolder::newest_healthy() {
  return newest([](const CheckpointMeta& m) { return m.healthy(); });
}

std::optional<StoredCheckpoint> CheckpointFolder::newest_to_load(
    const std::function<bool(const CheckpointMeta&)>& wanted) {
  for (;;) {
    auto found = newest(wanted);
    if (!found) return found;
    known_.erase(found->path);
    if (checked(found->path, found->meta.step)) return found;
  }
}

std::optional<StoredCheckpoint> CheckpointFolder::to_resume() {
  recover();
  end_going_back();
  const auto found = newest([](const CheckpointMeta& m) {
    if (!m.healthy())
      log_warning("the checkpoint of step {} is passed over: {}", m.step, m.problem);
    return m.healthy();
  });
  for (const std::string& p : problems_) log_warning("a checkpoint is passed over: {}", p);
  for (const Path& p : foreign_)
    log_warning("a checkpoint of another run is left alone: {}", p.string());
  if (!found && !problems_.empty())
    throw DataError("E0641", "none of the checkpoints can be used")
        .at(folder_.string())
        .saw(problems_.front())
        .advice("start anew in another folder");
  if (!found && !foreign_.empty() && whole().empty()) refuse_others();
  return found;
}

void CheckpointFolder::refuse_others() const {
  const Path& first = foreign_.front();
  throw UserError("E0825", "the checkpoints are not those of the run that run.json names")
      .at(first.string())
      .saw("run " + in_quotes(read_manifest(first).meta.run))
      .need("run " + in_quotes(run_.value_or("")))
      .advice(
          "bring the right one back; or move run.json away: a run goes on from what its "
          "checkpoints carry, and `aloft generate` takes a checkpoint's folder, too");
}

std::vector<StoredCheckpoint> CheckpointFolder::whole() {
  std::vector<StoredCheckpoint> all;
  for (const auto& [path, step] : entries(folder_, "", ""))
    if (auto meta = checked(path, step)) all.push_back({path, std::move(*meta)});
  return all;
}

std::optional<StoredCheckpoint> CheckpointFolder::best() {
  std::optional<StoredCheckpoint> best;
  for (StoredCheckpoint& c : whole()) {
    if (!c.meta.healthy() || !c.meta.validation_loss) continue;
    const bool is_first = !best || validation_name(best->meta.data) != validation_name(c.meta.data);
    if (is_first || *c.meta.validation_loss < *best->meta.validation_loss) best = std::move(c);
  }
  return best;
}

// Whether it is whole and of this run; what is not is no news here.
bool CheckpointFolder::holds(const Path& checkpoint, std::int64_t step) {
  std::vector<std::string> problems = problems_;
  std::vector<Path> foreign = foreign_;
  const bool whole = checked(checkpoint, step).has_value();
  problems_ = std::move(problems);
  foreign_ = std::move(foreign);
  return whole;
}

void CheckpointFolder::recover_one(const Path& leftover, std::int64_t step) {
  const Path final_path = folder_ / name_of_step(step);
  const bool wanted = !holds(final_path, step) && holds(leftover, step);
  known_.erase(leftover);
  if (!wanted) return remove_quietly(leftover);
  put_in_place(leftover, final_path, step);
  log_info("the checkpoint of step {} was whole when its save was cut short: it is kept", step);
}

void CheckpointFolder::recover() {
  for (const auto& [path, step] : entries(folder_, ".", kRemoved)) remove_quietly(path);
  // The replacement before what it replaces.
  for (const auto& [path, step] : entries(folder_, ".", kPartial)) recover_one(path, step);
  for (const auto& [path, step] : entries(folder_, ".", kOld)) recover_one(path, step);
}

// Takes what has the name out of the way: one of this run as `old`, anything else for good.
void CheckpointFolder::make_room(const Path& final_path, const Path& old, std::int64_t step) {
  if (!has_name(final_path)) return;
  const bool ours = holds(final_path, step);
  known_.erase(final_path);
  if (ours) {
    remove_quietly(old);
    return rename_durably(final_path, old);
  }
  Path aside;
  for (int i = 1; aside.empty() || has_name(aside); ++i)
    aside = folder_ / fmt::format("{}.aside-{}", name_of_step(step), i);
  rename_durably(final_path, aside);
  log_warning("{} is no whole checkpoint of this run: it is {} now", final_path.string(),
              aside.filename().string());
}

void CheckpointFolder::put_in_place(const Path& whole, const Path& final_path, std::int64_t step) {
  const Path old = hidden(folder_, step, kOld);
  make_room(final_path, old, step);
  try {
    rename_durably(whole, final_path);
  } catch (...) {
    std::error_code ignored;
    if (!fs::exists(final_path, ignored)) fs::rename(old, final_path, ignored);
    throw;
  }
  if (whole != old) remove_quietly(old);
}

Path CheckpointFolder::path_of(std::int64_t step) const { return folder_ / name_of_step(step); }

Path CheckpointFolder::save(const CheckpointMeta& meta, const nn::Module& model,
                            const std::vector<Optimizer>& optimizers) {
  return save(parts_of(meta, model, optimizers));
}

Path CheckpointFolder::save(const CheckpointParts& parts,
                            const std::function<std::string()>& problem) {
  const std::int64_t step = parts.meta.step;
  Path final_path = path_of(step);
  const Path partial = hidden(folder_, step, kPartial);
  remove_quietly(partial);
  make_folder(partial);
  std::string text;
  try {
    write_checkpoint(partial, parts, problem);
    text = manifest_text(read_manifest(partial));
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(partial, ignored);  // its room may be what the disk lacks
    throw;
  }
  put_in_place(partial, final_path, step);
  known_[final_path] = text;
  return final_path;
}

void CheckpointFolder::go_back(const StoredCheckpoint& to, const CheckpointMeta& meta) {
  known_[to.path] = rewrite_manifest(to.path, meta);
  for (const StoredCheckpoint& later : whole())
    if (later.meta.step > to.meta.step) remove(later.meta.step);
}

void CheckpointFolder::end_going_back() {
  const std::vector<StoredCheckpoint> all = whole();
  const auto returns = [](const StoredCheckpoint& c) { return c.meta.rollbacks.size(); };
  const auto last = std::ranges::max_element(all, {}, returns);
  if (last == all.end()) return;
  for (const StoredCheckpoint& later : all)
    if (later.meta.step > last->meta.step && returns(later) < returns(*last))
      remove(later.meta.step);
}

// Renamed first: a removal that is cut short leaves nothing that looks damaged.
void CheckpointFolder::remove(std::int64_t step) {
  const Path path = path_of(step), removed = hidden(folder_, step, kRemoved);
  remove_quietly(removed);
  std::error_code error;
  fs::rename(path, removed, error);
  if (error) log_warning("cannot remove {}: {}", path.string(), error.message());
  known_.erase(path);
  if (!error) remove_quietly(removed);
}

std::vector<std::int64_t> CheckpointFolder::removable(const KeepPolicy& policy,
                                                      std::int64_t saved) {
  if (policy.newest <= 0) return {};
  const std::vector<StoredCheckpoint> stored = whole();
  std::vector<KeptCheckpoint> all;
  all.reserve(stored.size());
  for (const StoredCheckpoint& c : stored)
    all.push_back({c.meta.step, c.meta.healthy(), c.meta.validation_loss, was_kept_for_good(c.meta),
                   validation_name(c.meta.data)});
  KeepPolicy rules = policy;
  rules.gone_back_to = gone_back_to(stored);
  return checkpoints_to_remove(std::move(all), rules, saved);
}

void CheckpointFolder::prune(const KeepPolicy& policy, std::int64_t saved) {
  for (const std::int64_t step : removable(policy, saved)) remove(step);
}

}  // namespace aloft
