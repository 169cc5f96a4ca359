#include "cli/work_progress.h"

#include <fmt/format.h>

#include <algorithm>
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

WorkProgress::WorkProgress(std::string unit)
    : unit_(std::move(unit)),
      started_(monotonic_seconds()),
      is_quiet_(log_level() < LogLevel::Info),
      is_terminal_(is_terminal(Output::Err)) {}

WorkProgress::WorkProgress(std::string unit, bool is_quiet) : WorkProgress(std::move(unit)) {
  is_quiet_ = is_quiet || !is_terminal_;
}

WorkProgress::~WorkProgress() {
  if (width_ > 0) print_talk(std::string_view("\n"));
}

// In less than `width` columns.
std::string WorkProgress::text(double share, double now, std::size_t width) const {
  std::string s = fmt::format("{} {}/{}", unit_, grouped(done_), grouped(all_));
  const double left = share > 0 ? (now - started_) / share * (1 - share) : 0;
  for (const std::string& field :
       {so_far_, share > 0 ? "left " + human_seconds(left) : std::string()})
    if (!field.empty() && s.size() + 2 + field.size() < width) s += "  " + field;
  return s;
}

void WorkProgress::show(std::int64_t done, std::int64_t all, const std::string& so_far,
                        std::optional<double> share) {
  done_ = done;
  all_ = all;
  so_far_ = so_far;
  if (is_quiet_) return;
  const double now = monotonic_seconds();
  const double since = now - (drawn_ > 0 ? drawn_ : started_);
  const bool is_due = is_terminal_ ? done == all || drawn_ == 0 || since >= kRedraw
                                   : done < all && since >= kPlainEvery;
  if (!is_due) return;
  drawn_ = now;
  const double of_all = share.value_or(static_cast<double>(done) /
                                       static_cast<double>(std::max<std::int64_t>(all, 1)));
  if (is_terminal_) {
    const std::string line =
        text(of_all, now, static_cast<std::size_t>(terminal_width(Output::Err)));
    print_talk("\r{:<{}}", line, width_);
    width_ = line.size();
  } else {
    print_talk("{}\n", text(of_all, now, SIZE_MAX));
  }
  std::fflush(stderr);
}

void WorkProgress::clear() {
  if (width_ > 0) print_talk("\r{:<{}}\r", "", width_);
  width_ = 0;
}

void WorkProgress::watch(const std::function<void()>& work) {
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
