#include "train/kept_record.h"

#include "base/log.h"
#include "base/process.h"
#include "run/validation_loss_json.h"
#include "tasks/task.h"

namespace aloft {

using nlohmann::json;

void KeptRecord::begin(json known, const RunStart& start, std::int64_t step, std::int64_t steps,
                       bool resumes) {
  record_ = std::move(known);
  record_["run"] = directory_.run();
  record_["saved"] = resumes ? json(step) : json();
  if (!start.started.empty()) record_["started"] = start.started;
  if (resumes) keep_environment();
  record_["history"] = start.history;
  if (!start.history.empty()) record_["history"].back()["step"] = step;
  if (const auto products = record_.find("f32_products");
      products != record_.end() && (*products)["split_calls"] == 0)
    log_warning(
        "precision.matmul = {}: no product is split on this processor, all are plain f32 (aloft "
        "explain kernels says why)",
        (*products)["asked"].get<std::string>());
  record_["finished"] = false;
  if (step < steps || directory_.found_record().is_null()) directory_.write_record(record_);
}

// That in which the run began; those of resumes are in the history. Of a run whose record is lost,
// or has none, it is known no more.
void KeptRecord::keep_environment() {
  const json& found = directory_.found_record();
  record_.erase("environment");
  if (found.is_object() && found.contains("environment"))
    record_["environment"] = found["environment"];
}

void KeptRecord::saved(std::int64_t step) {
  record_["saved"] = step;
  directory_.write_record(record_);
}

void KeptRecord::end(const TrainResult& result, const std::optional<Stop>& stop,
                     const Error* error) {
  json record = record_;
  record["finished"] = result.exit == ExitCode::Ok;
  record["result"] = result_of(result, stop);
  if (error)
    record["error"] = {{"code", error->code()},
                       {"text", error->what()},
                       {"step", result.last_step},
                       {"skipped", result.skipped}};
  directory_.write_record(record);
}

// That of a run which had ended, and has made no step since, is the one that it had.
json KeptRecord::result_of(const TrainResult& result, const std::optional<Stop>& stop) const {
  if (const json& found = directory_.found_record(); result.steps == 0 && found.is_object() &&
                                                     found.contains("result") &&
                                                     found.value("finished", json()) == true)
    return found["result"];
  const std::string rate(find_task(record_.at("task").get<std::string>())->rate);
  json out = {{"steps", result.last_step},
              {"skipped", result.skipped},
              {"last_loss", result.last_loss ? json(*result.last_loss) : json()},
              {"median_step_s", result.median_step_s},
              {rate, result.tokens_per_s},
              {"peak_rss_bytes", peak_rss_bytes()}};
  if (result.validation) out.update(json_of(*result.validation));
  if (result.best) out["best"] = {{"step", result.best->step}, {"val_loss", result.best->loss}};
  for (const Rollback& r : result.rollbacks)
    out["rollbacks"].push_back({{"from_step", r.from},
                                {"to_step", r.to},
                                {"reason", r.reason},
                                {"data_from", r.data_from},
                                {"data_to", r.data_to}});
  if (stop) {
    out["stopped_early"] = true;
    out["stop_reason"] = stop->reason;
  }
  return out;
}

}  // namespace aloft
