#include "train/trend_monitor.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "checkpoint/health.h"
#include "frontend/programs.h"
#include "observe/trends/trend_lines.h"
#include "train/step_values.h"
#include "types/statistics.h"

namespace aloft {

namespace {

trends::Limits limits_of(const MonitorSection& m) {
  const auto limit = [](const MonitorRule& r) { return trends::Limit{r.threshold, r.window}; };
  return {limit(m.norm_jump), limit(m.dead_layer), limit(m.saturation), limit(m.nan),
          limit(m.loss_spike)};
}

// What a line says that is no number is not finite.
double number_in(const nlohmann::json& line, const char* key) {
  const auto it = line.find(key);
  return it != line.end() && it->is_number() ? it->get<double>()
                                             : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

TrendMonitor::TrendMonitor(const Session& session, Runner& runner, Path folder)
    : session_(session),
      runner_(runner),
      folder_(std::move(folder)),
      watch_(limits_of(session.recipe.monitor)) {
  const Programs* programs = runner.programs();
  if (!programs) return;
  for (const Look look : looks_of(recipe().probe, recipe().monitor)) {
    if (look == Look::Nothing) continue;
    const std::string name = Runner::program_of(look, recipe().probe, recipe().monitor);
    looking_.insert({look,
                     {trends::TrendReader(*programs->plan().find(name)),
                      programs->output<double>(name, kAllStatistics)}});
  }
}

bool TrendMonitor::is_search(double loss, double loss_scale, bool skipped) const {
  return skipped && is_of_search(session_.optimizer->scaler(), loss, loss_scale);
}

void TrendMonitor::remember() {
  watch_ = trends::TrendWatch(limits_of(recipe().monitor));
  const Path path = folder_ / "metrics.jsonl";
  if (!path_exists(path)) return;
  const std::string text = read_file(path, std::uint64_t{8} << 30);
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const nlohmann::json line = parse_json(std::string_view(text).substr(at, end - at));
    if (!line.is_object()) continue;
    if (line.contains("loss"))
      watch_.step(number_in(line, "loss"),
                  is_search(number_in(line, "loss"), number_in(line, "loss_scale"),
                            line.value("skipped", nlohmann::json()) == true));
    else if (const auto looked = line.find("trends"); looked != line.end())
      watch_.look(trends::layers_of(*looked));
  }
}

TrendMonitor::Seen TrendMonitor::see(const StepDone& step) {
  Seen seen;
  seen.alerts = watch_.step(step.loss, is_search(step.loss, step.loss_scale, step.skipped));
  const std::int64_t number = step.step - 1;  // of a run the first is 1, of a look 0
  if (!monitors(recipe().monitor, number)) return seen;
  seen.layers = layers_at(number, step.loss_scale * static_cast<double>(recipe().train.accumulate));
  for (TrendAlert& alert : watch_.look(seen.layers)) seen.alerts.push_back(std::move(alert));
  return seen;
}

std::vector<LayerTrends> TrendMonitor::layers_at(std::int64_t number,
                                                 double gradient_factor) const {
  if (const EagerTaps* taps = runner_.taps()) {
    StepValues values;
    values.add(*taps);
    return trends::TrendReader(values.values()).read(values.all(), gradient_factor);
  }
  const Looking& looking = looking_.at(look_at(recipe().probe, number, recipe().monitor));
  const auto read = looking.all.read();
  return looking.reader.read({read.data(), read.size()}, gradient_factor);
}

}  // namespace aloft
