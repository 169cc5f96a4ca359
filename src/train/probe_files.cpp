#include "train/probe_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/module.h"
#include "frontend/programs.h"
#include "nn/layer.h"

namespace aloft {

namespace {

// Bytes of tensors that wait to be written.
constexpr std::uint64_t kRoom = std::uint64_t{256} << 20;

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

void ProbeFiles::run_begun(const RunBegun& e, Control& run) {
  if (folder_.empty()) folder_ = e.folder / "probe";
  const Programs& programs = *runner_->programs();
  const ProbeSection& probe = session_.recipe.probe;
  for (const Look look : looks_of(probe)) {
    if (look == Look::Nothing) continue;
    const std::string name = Runner::program_of(look, probe);
    std::vector<probe::LookedAt> values = probe::looked_at_in(*programs.plan().find(name));
    std::erase_if(values, [&](const probe::LookedAt& v) { return !is_own(v.name); });
    probe::Dump dump(std::move(values), modules_of(session_.model()), probe.level);
    std::string construct = text_of(dump.construct()), stack = text_of(dump.stack());
    looked_.insert({look,
                    {std::move(dump), programs.output<double>(name, kAllStatistics),
                     std::move(construct), std::move(stack)}});
    missing_from_ = name;
  }
  if (probe.task == "tensor") {
    for (auto& [look, looked] : looked_)
      looked.tensors.emplace(programs, Runner::program_of(look, probe), probe, looked.dump);
    queue_.emplace(kRoom);
  }
  say_missing();
  if (probe.task == "structure") write_structure(run);
}

bool ProbeFiles::is_own(std::string_view name) const {
  const bool is_of_modules = name.starts_with("call:") || name.starts_with("parameter:");
  return !is_of_modules || session_.recipe.probe.level != "op";
}

// What there is to look at, without any step.
void ProbeFiles::write_structure(Control& run) const {
  const Looked& looked = looked_.begin()->second;
  const Path folder = folder_ / "step0" / "rank";
  make_folder(folder);
  put(folder / "construct.json", looked.construct);
  put(folder / "stack.json", looked.stack);
  put(folder / "dump.json", text_of(looked.dump.structure()));
  run.stop("probe.task is \"structure\", which is known before any step");
}

// What the program never has whole is named, and why.
void ProbeFiles::say_missing() const {
  const std::vector<RefusedTap>& refused = runner_->programs()->refused_taps(missing_from_);
  nlohmann::ordered_json missing = nlohmann::ordered_json::object();
  for (const RefusedTap& tap : refused)
    if (const std::string name = tap.name.substr(tap.name.find(':') + 1); is_own(name))
      missing[name] = tap.why;
  make_folder(folder_);
  put(folder_ / "missing.json", text_of(missing));
  if (!missing.empty())
    log_info("the probe sees all but {} values, which {} names", missing.size(),
             (folder_ / "missing.json").string());
}

void ProbeFiles::step_done(const StepDone& e, Control&) {
  const std::int64_t step = e.step - 1;  // of a run the first is 1, of a dump 0
  const auto found = looked_.find(look_at(session_.recipe.probe, step));
  if (found == looked_.end()) return;
  const Looked& looked = found->second;
  const Path folder = folder_ / ("step" + std::to_string(step)) / "rank";
  make_folder(folder);
  // The numbers last: where they are, the rest is.
  put(folder / "construct.json", looked.construct);
  put(folder / "stack.json", looked.stack);
  write(looked, folder);
}

void ProbeFiles::write(const Looked& looked, const Path& folder) {
  const auto read = looked.all.read();
  const std::span<const double> all(read.data(), read.size());
  if (!looked.tensors) return put(folder / "dump.json", text_of(looked.dump.numbers(all)));
  const Path tensors = folder / "dump_tensor_data";
  make_folder(tensors);
  const ProbeTensors::Taken taken = looked.tensors->take(all, tensors, *queue_);
  files_ += taken.files;
  bytes_ += taken.bytes;
  auto numbers = looked.dump.numbers(all, [&](std::size_t i, nlohmann::ordered_json& record) {
    if (!taken.added[i].is_null()) record.update(taken.added[i]);
  });
  numbers["task"] = "tensor";
  numbers["dump_data_dir"] = std::filesystem::absolute(tensors).string();
  std::string text = text_of(numbers);
  const std::uint64_t size = text.size();
  queue_->add(size, [path = folder / "dump.json", text = std::move(text)] { put(path, text); });
}

// What was written, and how long training waited for it.
void ProbeFiles::steps_over(const StepsOver&) {
  if (!queue_) return;
  queue_->wait();
  put(folder_ / "written.json",
      text_of({{"files", files_}, {"bytes", bytes_}, {"waited_s", queue_->waited_s()}}));
  log_info("the probe has written {} tensors, {}, for which training waited {:.1f} s", files_,
           human_bytes(bytes_), queue_->waited_s());
}

}  // namespace aloft
