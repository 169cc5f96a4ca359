#include "train/metrics.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace aloft {
namespace {

using nlohmann::json;

// JSON has no infinity and no NaN: they become null.
json number(double v) { return std::isfinite(v) ? json(v) : json(nullptr); }

void cut_back(const Path& path, std::int64_t step) {
  if (!std::filesystem::exists(path)) return;
  const std::string text = read_file(path, std::uint64_t{8} << 30);
  std::string kept;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;  // a line that a crash cut short
    const std::string_view line(text.data() + at, end + 1 - at);
    const json j = json::parse(line, nullptr, false);
    if (j.is_object() && j.contains("step") && j["step"].is_number() &&
        j["step"].get<std::int64_t>() <= step)
      kept += line;
    at = end + 1;
  }
  write_file_atomic(path, kept);
}

}  // namespace

Metrics::Metrics(const Path& folder, std::int64_t resumed_step) : board_(folder) {
  const Path path = folder / "metrics.jsonl";
  cut_back(path, resumed_step);
  file_.reset(std::fopen(path.c_str(), "ab"));
  if (!file_)
    throw EnvironmentError("E0603", "cannot write " + path.string()).saw(std::strerror(errno));
  if (resumed_step > 0) board_.restart_at(resumed_step + 1);
}

void Metrics::line(const std::string& text) {
  const std::string whole = text + "\n";
  if (std::fwrite(whole.data(), 1, whole.size(), file_.get()) != whole.size())
    throw EnvironmentError("E0603", "cannot write metrics.jsonl").saw(std::strerror(errno));
}

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
  board_.scalar("validation/loss", loss.loss, step);
  board_.scalar("validation/perplexity", loss.perplexity, step);
  if (loss.bits_per_byte) board_.scalar("validation/bits_per_byte", *loss.bits_per_byte, step);
  flush();
}

void Metrics::flush() {
  std::fflush(file_.get());
  board_.flush();
}

}  // namespace aloft
