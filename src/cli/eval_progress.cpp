#include "cli/eval_progress.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"

namespace aloft::cli {
namespace {

constexpr double kRedraw = 0.1, kPlainEvery = 5.0;  // seconds

}  // namespace

EvalProgress::EvalProgress(std::string unit)
    : unit_(std::move(unit)),
      started_(monotonic_seconds()),
      is_quiet_(log_level() < LogLevel::Info),
      is_terminal_(is_terminal(Output::Err)) {}

EvalProgress::~EvalProgress() {
  if (width_ > 0) print_talk(std::string_view("\n"));
}

// In less than `width` columns.
std::string EvalProgress::text(double left, std::size_t width) const {
  std::string s = fmt::format("{} {}/{}", unit_, grouped(done_), grouped(all_));
  for (const std::string& field : {so_far_, "left " + human_seconds(left)})
    if (s.size() + 2 + field.size() < width) s += "  " + field;
  return s;
}

void EvalProgress::show(std::int64_t done, std::int64_t all, const std::string& so_far) {
  done_ = done;
  all_ = all;
  so_far_ = so_far;
  if (is_quiet_ || done == 0) return;
  const double now = monotonic_seconds();
  const double since = now - (drawn_ > 0 ? drawn_ : started_);
  const bool is_due = is_terminal_ ? done == all || drawn_ == 0 || since >= kRedraw
                                   : done < all && since >= kPlainEvery;
  if (!is_due) return;
  drawn_ = now;
  const double left =
      (now - started_) / static_cast<double>(done) * static_cast<double>(all - done);
  if (is_terminal_) {
    const std::string line = text(left, static_cast<std::size_t>(terminal_width(Output::Err)));
    print_talk("\r{:<{}}", line, width_);
    width_ = line.size();
  } else {
    print_talk("{}\n", text(left, SIZE_MAX));
  }
  std::fflush(stderr);
}

void EvalProgress::watch(const std::function<void()>& work) {
  try {
    work();
  } catch (const Interrupted&) {
    width_ = 0;  // the signal's own notice has ended the line
    const std::string came_to = done_ == 0 ? "nothing was evaluated yet"
                                           : fmt::format("behind {} {} of {}: {} so far", unit_,
                                                         grouped(done_), grouped(all_), so_far_);
    throw Interrupted(InterruptScope::signal_name(), came_to.c_str());
  }
}

}  // namespace aloft::cli
