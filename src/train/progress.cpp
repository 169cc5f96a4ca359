#include "train/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "tasks/loss_text.h"
#include "types/trends.h"

namespace aloft {
namespace {

constexpr double kRedraw = 0.1;      // seconds
constexpr double kPlainEvery = 5.0;  // seconds
constexpr double kLongStep = 2.0;    // seconds
constexpr double kSmoothing = 0.95;
constexpr int kAlertsShown = 3;                     // of a rule and a step
constexpr int kSkipsShown = 20, kSkipsEvery = 100;  // of skips in a row

// A NaN has a sign bit that means nothing.
double unsigned_nan(double x) { return std::isnan(x) ? std::fabs(x) : x; }

std::string duration(double s) {
  if (!(s >= 0) || s > 360000) return "-";
  const long n = std::lround(s);
  return n >= 3600 ? fmt::format("{}:{:02}:{:02}", n / 3600, n / 60 % 60, n % 60)
                   : fmt::format("{}:{:02}", n / 60, n % 60);
}

}  // namespace

Progress::Progress(const Session& session, bool quiet, std::int64_t steps)
    : session_(session), wanted_(steps), quiet_(quiet), terminal_(is_terminal(Output::Err)) {}

Progress::~Progress() {
  waiting_ = {};
  pause();
}

void Progress::run_begun(const RunBegun& e, Control&) {
  last_ = wanted_ > 0 ? std::min(wanted_, e.steps) : e.steps;
  started_ = monotonic_seconds();
  if (terminal_ && !quiet_) InterruptScope::answer();
}

void Progress::draw(const std::string& line) {
  print_talk("\r{:<{}}", line, width_);
  width_ = line.size();
  std::fflush(stderr);
}

void Progress::step_begun(const StepBegun& e) {
  if (!terminal_ || quiet_ || printed_step_ > 0) return;
  waiting_ = std::jthread(
      [this, step = e.step](const std::stop_token& done) { show_waiting(step, done); });
}

void Progress::show_waiting(std::int64_t step, const std::stop_token& done) {
  const double begun = monotonic_seconds();
  std::unique_lock lock(mutex_);
  const auto never = [] { return false; };
  while (!wake_.wait_for(lock, done, std::chrono::seconds(1), never) && !done.stop_requested())
    if (const double seconds = monotonic_seconds() - begun; seconds >= kLongStep)
      draw(fmt::format("step {}/{} running, {} so far", step, last_, human_seconds(seconds)));
}

std::string Progress::text(const StepDone& r, std::size_t width) const {
  const double eta = rate_.left(last_ - r.step, monotonic_seconds() - started_);
  const double mean = weight_ > 0 ? smoothed_ / weight_ : unsigned_nan(r.loss);
  // What matters most comes first: a narrow terminal has no room for the last ones.
  std::vector<std::string> fields = {
      fmt::format("step {}/{}", r.step, last_),
      fmt::format("loss {} (mean {})", loss_text(unsigned_nan(r.loss)), loss_text(mean)),
      "left " + duration(eta),
      fmt::format("{:.0f} {}/s", tokens_per_s_, task_kind(session_.recipe).short_unit)};
  if (r.skips > 0) fields.push_back(fmt::format("skipped {}", r.skips));
  if (std::isfinite(r.loss))
    for (const Measure& m : session_.task->measures(mean, {}, std::nullopt))
      fields.push_back(m.text);
  fields.push_back(fmt::format("lr {:.1e}", r.lr));
  fields.push_back(fmt::format("norm {:.3g}", unsigned_nan(r.grad_norm)));
  if (r.loss_scale != 1) fields.push_back(fmt::format("scale {:.10g}", r.loss_scale));
  std::string s = fields.front();
  for (std::size_t i = 1; i < fields.size() && s.size() + 2 + fields[i].size() < width; ++i)
    s += "  " + fields[i];
  return s;
}

// Of a long row of skips the first and then few are shown; metrics.jsonl holds every one.
void Progress::show_skip(const StepDone& r) {
  if (skips_in_row_ > kSkipsShown && skips_in_row_ % kSkipsEvery != 0) return;
  pause();
  print_talk("step {} skipped: the gradient of {} is not finite (loss scale {:.10g})", r.step,
             r.culprit.empty() ? "the loss" : r.culprit, r.loss_scale);
  if (skips_in_row_ >= kSkipsShown) print_talk(", {} in a row", skips_in_row_);
  if (skips_in_row_ == kSkipsShown) print_talk("; every {}th is shown from now on", kSkipsEvery);
  print_talk("\n");
}

void Progress::step_done(const StepDone& r, Control&) {
  if (std::isfinite(r.loss)) {
    smoothed_ = kSmoothing * smoothed_ + (1 - kSmoothing) * r.loss;
    weight_ = kSmoothing * weight_ + (1 - kSmoothing);
  }
  if (quiet_) return;
  waiting_ = {};
  const double now = monotonic_seconds();
  rate_.add(time_ < 0 ? now - started_ : r.time_s - time_);
  tokens_per_s_ =
      time_ < 0 ? r.tokens_per_s : static_cast<double>(r.tokens - tokens_) / rate_.median();
  tokens_ = r.tokens;
  time_ = r.time_s;
  skips_in_row_ = r.skipped ? skips_in_row_ + 1 : 0;
  if (r.skipped) show_skip(r);
  const bool last = r.step == last_;
  if (terminal_ && (last || now - drawn_ >= kRedraw)) {
    const std::string line = text(r, static_cast<std::size_t>(terminal_width(Output::Err)));
    draw(line);
    drawn_ = now;
    if (last) pause();
  } else if (!terminal_ && (last || printed_step_ == 0 || now - drawn_ >= kPlainEvery)) {
    print_talk("{}\n", text(r, SIZE_MAX));
    drawn_ = now;
  }
  printed_step_ = r.step;
  std::fflush(stderr);
}

// What is wrong in many layers is shown of the first; metrics.jsonl has all.
void Progress::trends_seen(const TrendsSeen& e, Control&) {
  if (quiet_ || e.alerts.empty()) return;
  pause();
  std::map<std::string, int> raised;
  for (const TrendAlert& alert : e.alerts)
    if (++raised[alert.rule] <= kAlertsShown)
      print_talk("step {}: {}{}{}: {}\n", e.step, alert.rule, alert.layer.empty() ? "" : " in ",
                 alert.layer, alert.text);
  for (const auto& [rule, layers] : raised)
    if (layers > kAlertsShown)
      print_talk("step {}: {} in {} more layers\n", e.step, rule, layers - kAlertsShown);
  std::fflush(stderr);
}

// The losses that are left behind are no part of the mean.
void Progress::rolled_back(const RolledBack& e) {
  waiting_ = {};
  pause();
  smoothed_ = weight_ = 0;
  time_ = e.time_s;
  tokens_ = e.tokens;
  skips_in_row_ = 0;
}

void Progress::evaluation_begun(const EvaluationBegun&) { pause(); }

void Progress::steps_over(const StepsOver& e) {
  waiting_ = {};
  pause();
  if (*e.signal)
    log_info("interrupted by {} after step {}: saving", e.signal, e.step);
  else if (e.stop)
    log_info("step {}: {}: the run ends", e.step, e.stop->reason);
}

void Progress::pause() {
  if (terminal_ && width_ > 0) print_talk("\n");
  width_ = 0;
}

}  // namespace aloft
