#include "train/metrics.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json.h"
#include "base/log.h"

namespace aloft {
namespace {

using nlohmann::json;

// JSON has no infinity and no NaN: they become null.
json number(double v) { return std::isfinite(v) ? json(v) : json(nullptr); }

constexpr const char* kLines = "metrics.jsonl";

// Takes what lies beyond away from a run's record; what is left. The lines were on the disk before
// the checkpoint was: that some are gone is somebody else's doing, and said.
KeptLines cut_back(const Path& folder, ResumedAt at) {
  cut_events(folder, at.step, at.is_evaluated ? "" : "validation/");
  const Path path = folder / kLines;
  const std::string text = path_exists(path) ? read_file(path, std::uint64_t{8} << 30) : "";
  KeptLines lines = at.step > 0 ? lines_up_to(text, at) : KeptLines();  // 0: it starts anew
  if (lines.damaged > 0)
    log_warning("{} lines of {} are damaged and are left out", lines.damaged, path.string());
  const auto miss = [&](const char* what, std::int64_t have, std::int64_t want) {
    if (have < want)
      log_warning("{} has no line of {} of the {} {} so far", path.string(), want - have, want,
                  what);
  };
  miss("steps", lines.steps, at.step);
  miss("evaluations", lines.evaluations, at.evaluations);
  if (lines.text != text) write_file_atomic(path, lines.text);
  return lines;
}

// Counts steps and evaluations that stand where they were written: each step has its line once, an
// evaluation lies between its step's line and the next one's.
class LinesInOrder {
 public:
  void step(std::int64_t number) {
    if (evaluated_ >= number && evaluated_ >= 0) --evaluations_;
    evaluated_ = -1;
    if (number > 0) steps_.push_back(number);
    at_ = number;
  }
  void evaluation(std::int64_t number) {
    if (number < at_ || number == evaluated_) return;  // of another step, or said twice
    ++evaluations_;
    evaluated_ = number;
  }
  std::int64_t steps() const {
    std::vector<std::int64_t> once = steps_;
    std::sort(once.begin(), once.end());
    return std::unique(once.begin(), once.end()) - once.begin();
  }
  std::int64_t evaluations() const { return evaluations_; }

 private:
  std::vector<std::int64_t> steps_;
  std::int64_t at_ = 0, evaluations_ = 0;
  std::int64_t evaluated_ = -1;  // behind the last step's line; -1: none
};

}  // namespace

KeptLines lines_up_to(std::string_view text, ResumedAt last) {
  KeptLines out;
  LinesInOrder in_order;
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string_view::npos;
       at = end + 1) {  // behind the last end lies a line that a crash cut short
    const std::string_view line = text.substr(at, end + 1 - at);
    const json j = parse_json(line);
    const auto at_step = j.is_object() ? j.find("step") : j.end();
    if (at_step == j.end() || !at_step->is_number_integer()) {
      ++out.damaged;
      continue;
    }
    const auto step = at_step->get<std::int64_t>();
    const bool is_later_evaluation =
        step == last.step && !last.is_evaluated && j.contains("val_loss");
    if (step > last.step || is_later_evaluation) continue;
    out.text += line;
    if (j.contains("loss")) in_order.step(step);
    if (j.contains("val_loss")) in_order.evaluation(step);
  }
  out.steps = in_order.steps();
  out.evaluations = in_order.evaluations();
  return out;
}

Metrics::Metrics(const Path& folder, ResumedAt at)
    : evaluations_(cut_back(folder, at).evaluations), file_(folder / kLines), board_(folder) {
  if (at.step > 0) board_.restart_at(at.step + 1);
}

void Metrics::line(const std::string& text) { file_.write(text + "\n"); }

void Metrics::step(const StepRecord& r) {
  json j = {{"step", r.step},
            {"loss", number(r.loss)},
            {"lr", r.lr},
            {"grad_norm", number(r.grad_norm)},
            {"loss_scale", r.loss_scale},
            {"skipped", r.skipped},
            {"tokens", r.tokens},
            {"tokens_per_s", r.tokens_per_s},
            {"time_s", r.time_s}};
  if (r.skipped) j["culprit"] = r.culprit;
  line(j.dump());
  board_.scalar("train/loss", r.loss, r.step);
  board_.scalar("train/lr", r.lr, r.step);
  board_.scalar("train/grad_norm", r.grad_norm, r.step);
  board_.scalar("train/loss_scale", r.loss_scale, r.step);
  board_.scalar("train/tokens_per_s", r.tokens_per_s, r.step);
}

void Metrics::evaluation(std::int64_t step, const ValidationLoss& loss) {
  json j = json_of(loss);
  j["step"] = step;
  line(j.dump());
  ++evaluations_;
  board_.scalar("validation/loss", loss.loss, step);
  board_.scalar("validation/perplexity", loss.perplexity, step);
  if (loss.bits_per_byte) board_.scalar("validation/bits_per_byte", *loss.bits_per_byte, step);
  flush();
}

void Metrics::flush() {
  file_.flush();
  board_.flush();
}

void Metrics::sync() {
  file_.sync();
  board_.sync();
}

}  // namespace aloft
