// How far an evaluation or a file of prompts is, on stderr: a line in place on a terminal, now and
// then a plain line elsewhere. Ctrl-C ends it with what was seen until then.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace aloft::cli {

class WorkProgress {
 public:
  // `unit`: what is counted, "window".
  explicit WorkProgress(std::string unit);
  // On a terminal alone, and where `is_quiet` not there either, at whichever level talk is heard.
  WorkProgress(std::string unit, bool is_quiet);
  ~WorkProgress();
  WorkProgress(const WorkProgress&) = delete;
  WorkProgress& operator=(const WorkProgress&) = delete;

  // So many of all are done, and come to that: "loss 3.21". `share`: of the whole work, where
  // more is done than what is counted.
  void show(std::int64_t done, std::int64_t all, const std::string& so_far,
            std::optional<double> share = std::nullopt);
  // Takes the line in place away, before something else is said there.
  void clear();
  // Calls `work`, which calls show(). Interrupted (interrupt.h), which then says how far it came.
  void watch(const std::function<void()>& work);

 private:
  std::string text(double share, double now, std::size_t width) const;

  std::string unit_, so_far_;
  std::int64_t done_ = 0, all_ = 0;
  double started_, drawn_ = 0;
  std::size_t width_ = 0;  // of the line in place; 0: there is none
  bool is_quiet_, is_terminal_;
};

}  // namespace aloft::cli
