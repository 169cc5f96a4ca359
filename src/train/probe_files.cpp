#include "train/probe_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/log.h"
#include "frontend/module.h"
#include "frontend/programs.h"
#include "nn/layer.h"

namespace aloft {

namespace {

constexpr const char* kProgram = "train";

std::vector<probe::DumpedModule> modules_of(nn::Module& model) {
  std::vector<probe::DumpedModule> all;
  for (const nn::Module* m : model.modules()) all.push_back({m->path(), std::string(m->kind())});
  return all;
}

std::string text_of(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Whole or not there, whatever ends the program; a step does not wait for the disk.
void put(const Path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit_unflushed();
}

}  // namespace

ProbeFiles::ProbeFiles(const Session& session, const std::unique_ptr<Runner>& runner, Path folder)
    : session_(session), runner_(runner), folder_(std::move(folder)) {}

void ProbeFiles::run_begun(const RunBegun& e, Control&) {
  if (folder_.empty()) folder_ = e.folder / "probe";
  const Programs& programs = *runner_->programs();
  dump_.emplace(probe::looked_at_in(*programs.plan().find(kProgram)), modules_of(session_.model()),
                session_.recipe.probe.level);
  all_ = programs.output<double>(kProgram, kAllStatistics);
  construct_ = text_of(dump_->construct());
  stack_ = text_of(dump_->stack());
  say_missing();
}

// What the program never has whole is named, and why.
void ProbeFiles::say_missing() const {
  const std::vector<RefusedTap>& refused = runner_->programs()->refused_taps(kProgram);
  nlohmann::ordered_json missing = nlohmann::ordered_json::object();
  for (const RefusedTap& tap : refused)
    missing[tap.name.substr(std::min(tap.name.size(), kStatisticsPrefix.size()))] = tap.why;
  make_folder(folder_);
  put(folder_ / "missing.json", text_of(missing));
  if (!refused.empty())
    log_info("the probe sees all but {} values, which {} names", refused.size(),
             (folder_ / "missing.json").string());
}

bool ProbeFiles::is_due(std::int64_t step) const {
  const std::vector<std::int64_t>& at = session_.recipe.probe.at;
  return at.empty() || std::ranges::find(at, step) != at.end();
}

void ProbeFiles::step_done(const StepDone& e, Control&) {
  const std::int64_t step = e.step - 1;  // of a run the first is 1, of a dump 0
  if (!is_due(step)) return;
  const Path folder = folder_ / ("step" + std::to_string(step)) / "rank";
  make_folder(folder);
  // The numbers last: where they are, the rest is.
  put(folder / "construct.json", construct_);
  put(folder / "stack.json", stack_);
  const auto read = all_.read();
  put(folder / "dump.json", text_of(dump_->numbers({read.data(), read.size()})));
}

}  // namespace aloft
