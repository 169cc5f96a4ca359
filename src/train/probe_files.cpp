#include "train/probe_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_number.h"
#include "base/log.h"
#include "frontend/programs.h"
#include "nn/layer.h"
#include "observe/probe/looked_at.h"
#include "observe/probe/tap_words.h"
#include "train/step_values.h"

namespace aloft {

namespace {

// Of a tap's name, behind what says that it shows statistics.
std::string_view value_of_tap(std::string_view tap) { return tap.substr(shown_prefix(tap).size()); }

// What the loop says of the step, for who compares two runs.
nlohmann::ordered_json training_of(const StepDone& e, const Recipe& recipe) {
  const OptimizerSection& o = recipe.optimizer;
  nlohmann::ordered_json optimizer = {{"kind", o.kind}};
  if (const optim::OptimizerKind* kind = optim::find_optimizer_kind(o.kind))
    for (const optim::OptimizerSetting& setting : kind->settings)
      if (const auto it = o.options.find(setting.key); it != o.options.end())
        std::visit([&](const auto& v) { optimizer[std::string(setting.key)] = v; }, it->second);
  optimizer["weight_decay"] = o.weight_decay;
  nlohmann::ordered_json training = {{"loss", json_number(e.loss)},
                                     {"learning_rate", e.lr},
                                     {"loss_scale", e.loss_scale},
                                     {"skipped", e.skipped},
                                     {"micro_batches", recipe.train.accumulate},
                                     {"optimizer", std::move(optimizer)}};
  // What remains of the norm where rows or elements are clipped is not known.
  if (o.clip_adaptive == 0 && o.clip_value == 0)
    training["gradient_norm"] =
        json_number(o.clip_norm > 0 ? std::min(e.grad_norm, o.clip_norm) : e.grad_norm);
  return training;
}

}  // namespace

ProbeFiles::ProbeFiles(const Session& session, const std::unique_ptr<Runner>& runner, Path folder)
    : session_(session), runner_(runner), folder_(std::move(folder)) {}

void ProbeFiles::run_begun(const RunBegun& e, Control& run) {
  if (folder_.empty()) folder_ = e.folder / "probe";
  const ProbeSection& probe = session_.recipe.probe;
  writer_.emplace(probe, folder_);
  modules_ = dumped_modules(session_.model());
  if (const Programs* programs = runner_->programs()) look_into(*programs);
  if (probe.task != "structure") return;
  writer_->write_structure(looked_.begin()->second.seen);
  run.stop("probe.task is \"structure\", which is known before any step");
}

void ProbeFiles::look_into(const Programs& programs) {
  const ProbeSection& probe = session_.recipe.probe;
  std::string last;
  for (const Look look : looks_of(probe)) {
    if (look == Look::Nothing) continue;
    const std::string& name = last = Runner::program_of(look, probe);
    const auto find = [&](const std::string& tap) { return source_of(programs, name, tap); };
    std::vector<probe::LookedAt> values = probe::looked_at_in(*programs.plan().find(name));
    std::erase_if(values, [&](const probe::LookedAt& v) { return !is_own(v.name); });
    auto seen = writer_->of(std::move(values), modules_, find);
    looked_.emplace(look, Looked{std::move(seen), programs.output<double>(name, kAllStatistics)});
  }
  // What the program never has whole is named, and why.
  std::vector<RefusedTap> refused = programs.refused_taps(last);
  std::erase_if(refused, [&](const RefusedTap& tap) { return !is_own(value_of_tap(tap.name)); });
  writer_->write_missing(refused);
  if (!refused.empty())
    log_info("the probe sees all but {} values, which {} names", refused.size(),
             (folder_ / "missing.json").string());
}

bool ProbeFiles::is_own(std::string_view name) const {
  const bool is_of_modules = name.starts_with(probe::kCall) || name.starts_with(probe::kParameter);
  return !is_of_modules || session_.recipe.probe.level != "op";
}

void ProbeFiles::step_done(const StepDone& e, Control&) {
  const std::int64_t step = e.step - 1;  // of a run the first is 1, of a dump 0
  const Look look = look_at(session_.recipe.probe, step);
  if (look == Look::Nothing) return;
  if (const EagerTaps* taps = runner_->taps()) return write(e, *taps);
  const Looked& looked = looked_.at(look);
  const auto read = looked.all.read();
  writer_->write(step, looked.seen, {read.data(), read.size()}, training_of(e, session_.recipe));
}

// Each eager step says for itself what there is.
void ProbeFiles::write(const StepDone& e, const EagerTaps& taps) {
  StepValues step;
  step.add(taps);
  std::vector<probe::LookedAt> values = step.values();
  std::erase_if(values, [&](const probe::LookedAt& v) { return !is_own(v.name); });
  std::vector<RefusedTap> missing = taps.missing();
  std::erase_if(missing, [&](const RefusedTap& tap) { return !is_own(value_of_tap(tap.name)); });
  const auto find = [&](const std::string& tap) { return step.find(tap); };
  writer_->write_missing(missing);
  writer_->write(e.step - 1, writer_->of(std::move(values), modules_, find), step.all(),
                 training_of(e, session_.recipe));
}

void ProbeFiles::checkpoint_begun(const CheckpointBegun&) { settle(); }

void ProbeFiles::steps_over(const StepsOver&) {
  if (writer_) writer_->finish();
}

}  // namespace aloft
